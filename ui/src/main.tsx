/** Where the page begins. */

import { render } from "preact";
import type { Explain, Summary, TraceInfo } from "./host/api";
import { chooseHost } from "./host/choose";
import "./host/wasm";
import { applyTheme, watchTheme } from "./lib/palette";
import { ask, setHost, theHost, timings, underWay } from "./state/ask";
import { listen } from "./state/keys";
import { current } from "./state/nav";
import { get, set, subscribe } from "./state/store";
import { followChain } from "./state/told";
import { link, read } from "./state/url";
import { App } from "./views/app";
import { savedTheme } from "./views/header";
import "./style.css";

/** Between two looks at how far the reading is, in milliseconds. */
const AGAIN = 150;

const message = (e: unknown): string => (e instanceof Error ? e.message : String(e));

/** Waits until a trace is read; says meanwhile how far it is. */
async function ready(id: number): Promise<TraceInfo> {
  for (;;) {
    const traces = await theHost().traces();
    set({ asked: true });
    if (traces.length === 0) {
      set({ traces });
      await new Promise<void>((go) => {
        const stop = subscribe(() => {
          if (get().traces.length === 0) return;
          stop();
          go();
        });
      });
      continue;
    }
    const trace = traces.find((t) => t.id === id) ?? traces[0];
    if (!trace) continue;
    set({ traces, trace: trace.id });
    if (trace.error) throw new Error(trace.error);
    if (trace.reading === undefined || trace.reading === null) return trace;
    await new Promise((go) => setTimeout(go, AGAIN));
  }
}

/** What tests read: questions under way, how long each took, and where on the graph a cause's longest stretch is, 0 to 1. */
const FOR_TESTS = {
  holdupTimings: timings,
  holdupBusy: () => underWay,
  holdupFirst: (culprit?: string) => {
    const findings = get().explain?.findings ?? [];
    const found = culprit ? findings.find((f) => f.culprit.thread === culprit) : findings[0];
    const all = [...(found?.windows ?? [])].sort((a, b) => b[1] - b[0] - (a[1] - a[0]));
    const [from, to] = current();
    return all[0] ? (((all[0][0] + all[0][1]) / 2) * 1e9 - from) / (to - from) : null;
  },
};

let opening = 0;

/** Shows a trace: what can be told at once first, what held it up as soon as that is known. */
async function open(id: number, fresh: boolean): Promise<void> {
  const turn = ++opening;
  try {
    const reset = { window: null, finding: null, open: [], point: null, at: null, chainOf: null, span: null, selection: null, undo: [] };
    set({ trace: id, summary: null, explain: null, explainError: null, fatal: null, ...(fresh ? reset : {}) });
    const trace = await ready(id);
    if (trace.kind === "plots" || turn !== opening) return;
    document.title = `${trace.name} – holdup`;
    const { json } = await ask<Summary>({ ask: "summary" }, "summary", trace.id);
    if (turn !== opening) return;
    set({ summary: json });
    performance.mark("first");
    try {
      const explain = await ask<Explain>({ ask: "explain" }, "explain", trace.id);
      if (turn === opening) set({ explain: explain.json });
    } catch (e) {
      if (turn === opening) set({ explainError: message(e) });
    }
    // The others' states, for the list at the top.
    if (turn === opening && get().traces.some((t) => t.reading !== undefined)) set({ traces: await theHost().traces() });
  } catch (e) {
    if (turn === opening) set({ fatal: message(e) });
  }
}

function start(): void {
  const theme = savedTheme();
  set({ ...read(location.hash), theme });
  applyTheme(theme);
  watchTheme(() => get().theme);
  const root = document.getElementById("app");
  if (!root) return;
  root.textContent = "";
  try {
    setHost(chooseHost());
  } catch (e) {
    set({ fatal: message(e) });
  }
  listen();
  followChain();
  link();
  render(<App choose={(id) => void open(id, true)} />, root);
  if (!get().fatal) void open(get().trace, false);
  Object.assign(globalThis, FOR_TESTS);
}

start();
