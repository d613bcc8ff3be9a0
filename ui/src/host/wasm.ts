/**
 * The host within the page: WebAssembly in a worker. A report brings its traces along, the page for dropped files begins
 * without one; nothing is ever fetched. All parts stand in the document as base64 of gzip, in elements that are no scripts.
 */

import type { Request, TraceInfo } from "./api";
import { registerHost, type Embedded } from "./choose";
import { unpack } from "./frame";
import { Cancelled, type Host, type Question } from "./host";

interface Brought {
  /** The element that holds it. */
  element: string;
  name: string;
  /** What the summary says beside: of which recording this is a part. */
  part?: unknown;
}

interface Config extends Embedded {
  traces?: Brought[];
}

/** What runs in the worker, behind the glue of wasm-bindgen, which defines `wasm_bindgen`. */
const WORKER = `
let page;
onmessage = async ({ data: m }) => {
  try {
    if (m.wasm) { await wasm_bindgen({ module_or_path: m.wasm }); page = new wasm_bindgen.Page(); postMessage({ n: m.n }); }
    else if (m.bytes) postMessage({ n: m.n, id: page.open(new Uint8Array(m.bytes), m.name) });
    else {
      const answer = m.list ? page.list() : page.ask(m.question);
      postMessage({ n: m.n, answer: answer.buffer }, [answer.buffer]);
    }
  } catch (e) {
    postMessage({ n: m.n, error: typeof e === "string" ? e : String(e && e.message || e), dead: typeof e !== "string" });
  }
};`;

interface Reply {
  n: number;
  id?: number;
  answer?: ArrayBuffer;
  error?: string;
  dead?: boolean;
}

interface Waiting {
  message: Record<string, unknown>;
  transfer: Transferable[];
  gesture: string;
  done: (reply: Reply) => void;
  fail: (error: Error) => void;
}

const textOf = (id: string) => {
  const found = document.getElementById(id);
  if (!found) throw new Error(`This file is not complete: its part ${id} is missing. Ask for it again.`);
  return found.textContent ?? "";
};

async function unpackElement(id: string): Promise<ArrayBuffer> {
  const text = textOf(id).trim();
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser is too old for this page: it needs DecompressionStream (2023 or later).");
  }
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** One question at a time; a newer one of the same gesture replaces one that still waits. */
class Engine {
  private worker: Worker | null = null;
  private queue: Waiting[] = [];
  private running: Waiting | null = null;
  private next = 1;

  async start(): Promise<void> {
    const source = new Blob([textOf("holdup-glue"), WORKER], { type: "text/javascript" });
    const url = URL.createObjectURL(source);
    const worker = new Worker(url);
    URL.revokeObjectURL(url);
    worker.onmessage = ({ data }: MessageEvent<Reply>) => this.settle(data);
    worker.onerror = (e) => this.settle({ n: this.next - 1, error: e.message || "the worker ended", dead: true });
    this.worker = worker;
    const wasm = await unpackElement("holdup-wasm");
    await this.send({ wasm }, [wasm]);
  }

  get alive(): boolean {
    return this.worker !== null;
  }

  send(message: Record<string, unknown>, transfer: Transferable[] = [], gesture = ""): Promise<Reply> {
    if (gesture) {
      this.queue = this.queue.filter((w) => {
        if (w.gesture !== gesture) return true;
        w.fail(new Cancelled());
        return false;
      });
    }
    return new Promise((done, fail) => {
      this.queue.push({ message, transfer, gesture, done, fail });
      this.pump();
    });
  }

  drop(message: Record<string, unknown>): void {
    const at = this.queue.findIndex((w) => w.message === message);
    if (at >= 0) this.queue.splice(at, 1)[0]?.fail(new Cancelled());
  }

  private pump(): void {
    if (this.running || !this.worker) return;
    this.running = this.queue.shift() ?? null;
    if (this.running) this.worker.postMessage({ ...this.running.message, n: this.next++ }, this.running.transfer);
  }

  private settle(reply: Reply): void {
    const asked = this.running;
    this.running = null;
    if (reply.dead) {
      this.worker?.terminate();
      this.worker = null;
      const left = this.queue.splice(0);
      left.forEach((w) => w.fail(new Cancelled()));
    }
    if (reply.error === undefined) asked?.done(reply);
    else if (reply.dead) asked?.fail(new Error(`This question met a mistake in holdup, please report it: ${reply.error}`));
    else asked?.fail(new Error(reply.error));
    this.pump();
  }
}

/** Adds `part` to the JSON of an answer that is JSON alone. */
function withPart(answer: ArrayBuffer, part: unknown): ArrayBuffer {
  const json = { ...(unpack<Record<string, unknown>>(answer).json), part };
  const text = new TextEncoder().encode(JSON.stringify(json));
  const framed = new Uint8Array(4 + text.length);
  new DataView(framed.buffer).setUint32(0, text.length, true);
  framed.set(text, 4);
  return framed.buffer;
}

export function wasmHost(config: Embedded): Host {
  const engine = new Engine();
  const brought = (config as Config).traces ?? [];
  /** What was opened, to open it again if the worker dies: name and how to have its bytes. */
  const opened: { name: string; bytes: () => Promise<ArrayBuffer>; part?: unknown }[] = brought.map((b) => ({
    name: b.name,
    bytes: () => unpackElement(b.element),
    part: b.part,
  }));
  let ready: Promise<void> | null = null;
  const openOne = async (of: (typeof opened)[number]) => {
    const bytes = await of.bytes();
    await engine.send({ bytes, name: of.name }, [bytes]);
  };
  const begin = async () => {
    await engine.start();
    for (const of of opened) await openOne(of);
  };
  const running = () => {
    if (!ready || !engine.alive) ready = begin();
    return ready;
  };
  return {
    async traces() {
      await running();
      const { answer } = await engine.send({ list: true });
      return unpack<{ traces: TraceInfo[] }>(answer ?? new ArrayBuffer(0)).json.traces;
    },
    async ask(request: Request & Question, signal?: AbortSignal) {
      await running();
      if (signal?.aborted) throw new Cancelled();
      const message = { question: new TextEncoder().encode(JSON.stringify(request)) };
      signal?.addEventListener("abort", () => engine.drop(message), { once: true });
      const { answer } = await engine.send(message, [], request.gesture);
      const part = request.ask === "summary" ? opened[request.trace]?.part : undefined;
      const bytes = answer ?? new ArrayBuffer(0);
      return part === undefined ? bytes : withPart(bytes, part);
    },
    async open(file: File) {
      await running();
      const of = { name: file.name, bytes: () => file.arrayBuffer() };
      const bytes = await of.bytes();
      const { id } = await engine.send({ bytes, name: of.name }, [bytes]);
      opened.push(of);
      return { id: id ?? opened.length - 1, name: of.name, kind: "trace" };
    },
  };
}

registerHost("wasm", wasmHost);
