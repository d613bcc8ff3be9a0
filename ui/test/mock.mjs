// A host for tests of the page alone: answers in the shapes of the contract, from a recording of `holdup demo` that was
// explained by the program (data/*.json) and lanes that are made up. `twist` changes answers before they are sent.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const data = async (name) => JSON.parse(await readFile(join(here, "data", `${name}.json`), "utf8"));
const TYPES = { u8: Uint8Array, u32: Uint32Array, f32: Float32Array, f64: Float64Array };

/** Packs an answer as the server does. */
export function pack(json, sections = {}) {
  const list = Object.entries(sections).map(([name, { type, values }]) => ({ name, type, length: values.length }));
  const head = Buffer.from(JSON.stringify(list.length > 0 ? { ...json, sections: list } : json));
  const parts = [Buffer.alloc(4), head];
  parts[0].writeUInt32LE(head.length);
  let at = 4 + head.length;
  for (const { type, values } of Object.values(sections)) {
    const pad = (8 - (at % 8)) % 8;
    const bytes = Buffer.from(TYPES[type].from(values).buffer);
    parts.push(Buffer.alloc(pad), bytes);
    at += pad + bytes.length;
  }
  return Buffer.concat(parts);
}

const CPUS = 2;

/** What the page would be told of a recording with `names` as threads. */
export async function answers(twist = (_ask, answer) => answer) {
  const [explain, chain, disasm, table] = await Promise.all(["explain", "chain", "disasm", "table"].map(data));
  const end = Math.round(explain.trace.duration_s * 1e9);
  const held = explain.findings[0].windows[0].map((s) => s * 1e9);
  const workers = Array.from({ length: 12 }, (_, i) => `compiler-${String(i).padStart(2, "0")}`);
  const threads = ["bitmap-scan", ...workers];
  const row = (name) => `t${threads.indexOf(name) + 1}`;
  const isHeld = (t) => t >= held[0] && t < held[1];
  const pixels = (window, px, f) => Array.from({ length: px }, (_, i) => f(window[0] + ((i + 0.5) / px) * (window[1] - window[0])));
  const chainRow = (who) => (threads.includes(who.thread) ? row(who.thread) : null);

  const asks = {
    summary: () => ({
      name: "demo.holdup",
      format: "holdup",
      host: {},
      duration_ns: end,
      cpus: CPUS,
      focus: explain.trace.focus,
      threads: threads.length,
      processes: 1,
      losses: [],
      presets: [
        { name: "who-waits-longest", doc: "threads by the time that they waited", table: "waits", by: table.by, show: ["sum:wait", "count", "mean:wait", "max:wait", "share:wait"], filter: null, sort: [] },
      ],
      tables: ["waits", "cpu"].map((name) => ({
        name,
        doc: `one row for each of ${name}`,
        columns: [
          ...["process", "thread", "kind", "function"].map((c) => ({ name: c, unit: "text", doc: `The ${c}.`, wpa: [] })),
          { name: "id", unit: "number", doc: "Its number.", wpa: [] },
          { name: "start", unit: "ns since start", doc: "When.", wpa: [] },
          { name: "wait", unit: "ns", doc: "From leaving the CPU to being woken.", wpa: ["Waits"] },
        ],
        default_columns: ["id", "start", "wait", "process", "thread"],
        default_measures: ["sum:wait", "count", "mean:wait", "max:wait", "share:wait"],
      })),
    }),
    explain: () => ({ ...explain, culprit_rows: explain.findings.map((f) => chainRow(f.culprit)) }),
    use: (q) => {
      const f32 = (f) => ({ type: "f32", values: pixels(q.window, q.px, f) });
      const sections = {
        busy: f32((t) => (isHeld(t) ? 1 : CPUS - 0.05)),
        other: f32((t) => (isHeld(t) ? 0.1 : 0.05)),
        f1: f32((t) => (isHeld(t) ? 0.9 : 0)),
        no_work: f32(() => 0),
      };
      const series = Object.keys(sections);
      if (q.overlay) sections.overlay = f32((t) => (isHeld(t) ? 1 : 0));
      return [{ window: q.window, px: q.px, cpus: CPUS, split: true, series, overlay: q.overlay ? { label: "bitmap-scan" } : null }, sections];
    },
    rows: (q) => {
      const open = new Set([...q.open, ...(q.reveal ? ["p1", "n1.1"] : [])]);
      const make = (id, depth, kind, label, more = {}) => ({
        id, depth, kind, label, detail: "", threads: 1, open: open.has(id), blame_s: 0, cpu_s: 0.2, held_s: 0, ...more,
      });
      let rows;
      if (q.lanes === "cpu") rows = [0, 1].map((c) => make(`c${c}`, 0, "cpu", `CPU ${c}`));
      else {
        rows = [make("p1", 0, "program", "holdup", { threads: threads.length, blame_s: 0.65 })];
        if (open.has("p1")) {
          rows.push(make(row("bitmap-scan"), 1, "thread", "bitmap-scan", { blame_s: 0.65, detail: "27024" }));
          rows.push(make("n1.1", 1, "name", "compiler-#", { threads: workers.length }));
          if (open.has("n1.1")) rows.push(...workers.map((w) => make(row(w), 2, "thread", w)));
        }
      }
      if (q.search) rows = rows.filter((r) => r.label.includes(q.search));
      const at = q.reveal ? rows.findIndex((r) => r.id === q.reveal) : undefined;
      const opened = q.reveal ? [...open].filter((o) => !q.open.includes(o)) : undefined;
      return { rows: rows.slice(q.offset, q.offset + q.limit), total: rows.length, at: at === -1 ? null : at, opened };
    },
    lanes: (q) => {
      const state = [];
      const cpus = q.ids.every((id) => id.startsWith("c"));
      for (const id of q.ids) {
        const scan = id === row("bitmap-scan");
        state.push(...pixels(q.window, q.px, (t) => (cpus ? 1 : scan === isHeld(t) ? 1 : scan ? 8 : isHeld(t) ? 4 : 3)));
      }
      const all = (n) => ({ type: "u8", values: state.map(() => n) });
      const sections = { state: { type: "u8", values: state }, share: all(255), run: all(0) };
      if (cpus) sections.who = { type: "u32", values: state.map(() => 0) };
      return [{ window: q.window, px: q.px, ids: q.ids, names: cpus ? ["bitmap-scan"] : undefined }, sections];
    },
    processes: (q) => ({ rows: [{ pid: 27006, name: "holdup", from: 0, to: end, parent: null, cpu_s: 3.28 }].slice(q.offset), total: 1 }),
    at: (q) => ({
      row: q.row, state: isHeld(q.time) ? "waits for a lock" : "runs", thread: threads[Number(q.row.slice(1)) - 1] ?? "holdup",
      from: isHeld(q.time) ? held[0] : q.time < held[0] ? 0 : held[1], to: isHeld(q.time) ? held[1] : q.time < held[0] ? held[0] : end,
      cpu: null, wait: null,
    }),
    chain: () => ({
      chain,
      hops: chain.hops.map((h) => ({
        row: chainRow(h.who), thread: h.who.thread, what: "ran", function: h.did.function, by: h.by,
        from: h.did.from_s * 1e9, to: h.did.to_s * 1e9, wait_from: h.wait ? h.wait.start_s * 1e9 : null,
      })),
    }),
    table: (q) => {
      if (!q.by.length) return table;
      const k = (q.path ?? []).length;
      if (!q.tree) return table;
      const at = table.by.indexOf(q.by[k]);
      const rows = new Map();
      for (const r of table.rows) {
        if (q.path.some((v, i) => r[table.by.indexOf(q.by[i])] !== v)) continue;
        const sum = rows.get(r[at]) ?? [r[at], ...q.show.map(() => 0)];
        r.slice(table.by.length).forEach((v, i) => (sum[i + 1] += v ?? 0));
        rows.set(r[at], sum);
      }
      const columns = [table.columns[at], ...table.columns.slice(table.by.length)];
      return { ...table, columns, rows: [...rows.values()], total_rows: rows.size };
    },
    flame: (q) => {
      const names = ["all", "write_object", "lock", "bitmap-scan", "find_free_block", "compile"];
      const part = (values) => ({ type: "f64", values });
      const sections = {
        name: { type: "u32", values: [0, 1, 2, 3, 4, 5] },
        parent: { type: "u32", values: [0xffffffff, 0, 1, 2, 3, 0] },
        value: part([1, 0.65, 0.65, 0.65, 0.64, 0.35]),
        self: part([0, 0, 0, 0.01, 0.64, 0.35]),
      };
      if (q.against !== undefined) sections.before = part([1, 0.5, 0.5, 0.5, 0.5, 0.5]);
      return [{ names, unit: "s", total: 1, cut: "" }, sections];
    },
    code: () => disasm,
    search: (q) => ({
      threads: threads.filter((t) => t.includes(q.text)).map((t) => ({ row: row(t), label: t })),
      functions: ["find_free_block", "write_object"].filter((f) => f.includes(q.text)).map((f) => ({ function: f, module: "holdup" })),
      locks: [], processes: [],
    }),
    diff: () => ({ before: {}, after: {}, slower: 1, cpu: 1, changes: [], within_noise: 0, notes: [] }),
    plots: () => ({ title: "", plots: [] }),
  };
  return (q) => {
    const made = asks[q.ask]?.(q);
    if (made === undefined) return pack({ error: `${q.ask} is not asked here` });
    const [json, sections] = Array.isArray(made) ? made : [made, {}];
    const told = twist(q, structuredClone(json), sections);
    return Buffer.isBuffer(told) ? told : pack(told, sections);
  };
}

/** Serves the page with the policy of the real server; gives its address. */
export async function serve({ dist = join(here, "../../crates/holdup-server/dist"), twist, traces } = {}) {
  const answer = await answers(twist);
  const files = { "": ["text/html; charset=utf-8", "index.html"], "app.js": ["text/javascript", "app.js"], "app.css": ["text/css", "app.css"] };
  const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'";
  const server = createServer(async (request, response) => {
    const path = request.url.replace(/^\/token\//, "");
    const send = (type, body, status = 200) => response.writeHead(status, { "content-type": type, "content-security-policy": policy }).end(body);
    if (path === "api/traces") return send("application/octet-stream", pack({ traces: traces ?? [{ id: 0, name: "demo.holdup", kind: "trace" }] }));
    if (path === "api/ask") {
      let body = "";
      for await (const chunk of request) body += chunk;
      return send("application/octet-stream", answer(JSON.parse(body)));
    }
    const file = files[path];
    return file ? send(file[0], await readFile(join(dist, file[1]))) : send("text/plain", "no", 404);
  });
  await new Promise((go) => server.listen(0, "127.0.0.1", go));
  return { url: `http://127.0.0.1:${server.address().port}/token/`, close: () => server.close() };
}
