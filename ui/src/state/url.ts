/** The part of the address after `#` holds the view: it can be kept, sent and gone back to. */

import type { Selection, Window } from "../host/api";
import { DEFAULT_VIEW, get, same, set, subscribe, type ChainOf, type FlameKind, type State, type Tab, type View } from "./store";

const TABS: readonly Tab[] = ["lanes", "processes", "table", "flame", "code", "compare", "plots"];
const FLAMES: readonly FlameKind[] = ["cpu", "off", "wakers", "blame"];

export function write(v: View): string {
  const p = new URLSearchParams();
  const d = DEFAULT_VIEW;
  if (v.trace !== d.trace) p.set("t", String(v.trace));
  if (v.window) p.set("w", `${v.window[0]}-${v.window[1]}`);
  if (v.finding) p.set("f", v.finding);
  if (v.tab !== d.tab) p.set("v", v.tab);
  if (v.lanes !== d.lanes) p.set("l", v.lanes);
  if (v.open.length > 0) p.set("o", v.open.slice(0, 64).join(","));
  if (v.point) p.set("p", `${Math.round(v.point.time)}@${v.point.row}`);
  if (v.at !== null) p.set("a", String(Math.round(v.at)));
  if (v.chainOf && !(v.finding && same(v.chainOf, { finding: v.finding }))) p.set("c", JSON.stringify(v.chainOf));
  if (v.span !== null) p.set("sp", String(v.span));
  if (!sameTable(v)) p.set("tb", JSON.stringify(v.table));
  const f = v.flame;
  if (!same(f, d.flame)) p.set("fl", [f.of, +f.callers, +f.leftHeavy, +f.differential, f.search].join("."));
  if (v.code) p.set("fn", `${v.code.function}\u0000${v.code.module}`);
  if (v.against !== null) p.set("vs", String(v.against));
  if (v.selection && !(v.finding && v.selection.finding === v.finding)) p.set("s", JSON.stringify(v.selection));
  return p.toString();
}

function sameTable(v: View): boolean {
  return JSON.stringify(v.table) === JSON.stringify(DEFAULT_VIEW.table);
}

/** What a link says; whatever does not make sense is left out. */
export function read(hash: string): View {
  const p = new URLSearchParams(hash.replace(/^#/, ""));
  const v: View = { ...DEFAULT_VIEW };
  v.trace = whole(p.get("t")) ?? v.trace;
  v.window = window(p.get("w"));
  v.finding = /^f\d+$/.test(p.get("f") ?? "") ? p.get("f") : null;
  const tab = p.get("v") as Tab;
  if (TABS.includes(tab)) v.tab = tab;
  if (p.get("l") === "cpu") v.lanes = "cpu";
  v.open = (p.get("o") ?? "").split(",").filter(Boolean).slice(0, 64);
  const point = /^(\d+)@(.+)$/.exec(p.get("p") ?? "");
  if (point) v.point = { time: Number(point[1]), row: point[2] ?? "" };
  v.at = whole(p.get("a"));
  v.chainOf = json<ChainOf>(p.get("c")) ?? (v.finding ? { finding: v.finding } : null);
  v.span = whole(p.get("sp"));
  const table = json<View["table"]>(p.get("tb"));
  if (table && typeof table.table === "string" && Array.isArray(table.by) && Array.isArray(table.show)) {
    v.table = {
      table: table.table,
      preset: String(table.preset ?? ""),
      by: table.by.map(String),
      show: table.show.map(String),
      where: String(table.where ?? ""),
      sort: Array.isArray(table.sort) ? table.sort.map(String) : [],
    };
  }
  const [of, callers, left, diff, ...search] = (p.get("fl") ?? "").split(".");
  if (FLAMES.includes(of as FlameKind)) {
    const on = (x: string | undefined) => x === "1";
    const flags = { callers: on(callers), leftHeavy: on(left), differential: on(diff) };
    v.flame = { of: of as FlameKind, ...flags, search: search.join(".") };
  }
  const code = p.get("fn");
  if (code) {
    const [fn = "", module = ""] = code.split("\u0000");
    v.code = { function: fn, module };
  }
  v.against = whole(p.get("vs"));
  v.selection = json<Selection>(p.get("s")) ?? (v.finding ? { finding: v.finding } : null);
  return v;
}

function whole(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

function window(text: string | null): Window | null {
  const m = /^(\d{1,15})-(\d{1,15})$/.exec(text ?? "");
  const [from, to] = [Number(m?.[1]), Number(m?.[2])];
  return m && from < to ? [from, to] : null;
}

function json<T extends object>(text: string | null): T | null {
  try {
    const value: unknown = JSON.parse(text ?? "null");
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as T) : null;
  } catch {
    return null;
  }
}

/** What makes a step of its own for the browser's back button. */
function step(s: State): string {
  return [s.trace, s.finding, s.tab, s.code?.function, s.against].join("\u0000");
}

/** Keeps address and view the same from here on. */
export function link(): void {
  let written = location.hash.replace(/^#/, "");
  let last = step(get());
  let timer = 0;
  const flush = () => {
    timer = 0;
    const s = get();
    const now = write(s);
    if (now === written) return;
    written = now;
    const push = step(s) !== last;
    last = step(s);
    history[push ? "pushState" : "replaceState"](null, "", `#${now}`);
  };
  subscribe(() => {
    if (step(get()) !== last) flush();
    else if (!timer) timer = window_().setTimeout(flush, 250);
  });
  window_().addEventListener("popstate", () => {
    written = location.hash.replace(/^#/, "");
    set(read(written));
    last = step(get());
  });
}

const window_ = () => globalThis as unknown as globalThis.Window & typeof globalThis;
