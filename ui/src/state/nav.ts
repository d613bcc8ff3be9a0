/** Moving through time: the window, its undo, and what choosing something does. */

import type { Finding, SpanShown, Stall, Window } from "../host/api";
import { get, set, type ChainOf, type State, type Tab } from "./store";

/** The narrowest window, in nanoseconds. */
const NARROWEST = 500;
/** Changes of one gesture that follow each other this closely are undone together, in milliseconds. */
const ONE_GESTURE = 700;

let lastZoom = Number.NEGATIVE_INFINITY;

export function whole(s: State = get()): Window {
  return [0, Math.max(1, s.summary?.duration_ns ?? 1)];
}

export function current(s: State = get()): Window {
  return s.window ?? whole(s);
}

/** Kept within the trace, at its own length where that is possible. */
export function clamp([from, to]: Window, [, end]: Window): Window {
  if (!Number.isFinite(from + to)) return [0, end];
  const length = Math.min(Math.max(to - from, NARROWEST), end);
  const start = Math.min(Math.max(from, 0), end - length);
  return [Math.round(start), Math.round(start + length)];
}

/** `continuous`: part of a gesture, which is undone as one. */
export function zoomTo(window: Window | null, continuous = false): void {
  const s = get();
  const next = window && clamp(window, whole(s));
  const to = next && next[0] <= 0 && next[1] >= whole(s)[1] ? null : next;
  if (to === s.window || (to && s.window && to[0] === s.window[0] && to[1] === s.window[1])) return;
  const now = performance.now();
  const merge = continuous && now - lastZoom < ONE_GESTURE;
  lastZoom = continuous ? now : Number.NEGATIVE_INFINITY;
  set({ window: to, undo: merge ? s.undo : [...s.undo.slice(-99), s.window] });
}

export function undoZoom(): void {
  const { undo } = get();
  if (undo.length === 0) return;
  lastZoom = Number.NEGATIVE_INFINITY;
  set({ window: undo[undo.length - 1] ?? null, undo: undo.slice(0, -1) });
}

/** Zooms by `factor` around `center`; a factor over 1 shows less. */
export function zoomBy(factor: number, center?: number): void {
  const [from, to] = current();
  const at = center ?? get().at ?? (from + to) / 2;
  const pivot = at < from || at > to ? (from + to) / 2 : at;
  zoomTo([pivot - (pivot - from) / factor, pivot + (to - pivot) / factor], true);
}

/** Moves by a share of what is shown. */
export function panBy(share: number): void {
  const [from, to] = current();
  const by = (to - from) * share;
  zoomTo([from + by, to + by], true);
}

/** What of a finding's windows to show: all of them with a margin, or the longest where they are scattered. */
export function telling(windows: readonly (readonly [number, number])[], end: number): Window | null {
  const first = windows[0];
  if (!first) return null;
  let from = first[0];
  let to = first[1];
  let longest = first;
  let sum = 0;
  for (const w of windows) {
    from = Math.min(from, w[0]);
    to = Math.max(to, w[1]);
    sum += w[1] - w[0];
    if (w[1] - w[0] > longest[1] - longest[0]) longest = w;
  }
  const [a, b] = to - from <= 4 * sum || windows.length <= 2 ? [from, to] : longest;
  const margin = (b - a) * 0.15;
  return clamp([a * 1e9 - margin * 1e9, b * 1e9 + margin * 1e9], [0, end]);
}

export function findingOf(s: State, id: string | null = s.finding): Finding | null {
  return s.explain?.findings.find((f) => f.id === id) ?? null;
}

/** Sets window, selection and all views to a finding. `keepWindow`: it was chosen by a click in what is shown. */
export function chooseFinding(id: string | null, options: { keepWindow?: boolean; at?: number } = {}): void {
  const s = get();
  const finding = findingOf(s, id);
  if (!finding) {
    set({ finding: null, selection: null, chainOf: null, span: null, point: null });
    return;
  }
  const code = finding.culprit.function
    ? { function: finding.culprit.function, module: finding.culprit.module }
    : s.code;
  const row = s.explain?.culprit_rows?.[s.explain.findings.indexOf(finding)] ?? null;
  set({
    finding: finding.id,
    selection: { finding: finding.id },
    chainOf: chainOf(finding, options.at),
    hop: 0,
    span: null,
    code,
    at: options.at ?? null,
    point: null,
    said: `${finding.id}: ${finding.title}`,
    open: s.open,
  });
  if (!options.keepWindow) zoomTo(telling(finding.windows, whole(s)[1]));
  if (row) revealRow(row);
}

/** Which wait tells of a finding; none where all of it is that something ran. */
function chainOf(finding: Finding, at: number | undefined): ChainOf | null {
  if (finding.kind === "cpu-bound") return null;
  return { finding: finding.id, ...(at === undefined ? {} : { time: Math.round(at) }) };
}

export function chooseStall(stall: Stall): void {
  const s = get();
  const w = stall.windows[0];
  if (!w) return;
  const middle = ((w[0] + w[1]) / 2) * 1e9;
  const chainOf = { time: Math.round(middle) };
  set({ finding: null, selection: null, chainOf, span: null, point: null, hop: 0, at: middle, said: stall.title });
  zoomTo(telling([w], whole(s)[1]));
}

export function nextFinding(by: 1 | -1): void {
  const s = get();
  const all = s.explain?.findings ?? [];
  if (all.length === 0) return;
  const now = all.findIndex((f) => f.id === s.finding);
  const next = now < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, now + by));
  chooseFinding(all[next]?.id ?? null);
}

export function openCode(fn: string, module = ""): void {
  if (fn) set({ code: { function: fn, module }, tab: "code" });
}

export function openTab(tab: Tab): void {
  set({ tab });
}

type Reveal = (row: string) => void;
let reveal: Reveal = () => undefined;
let pending: string | null = null;

/** The lanes say here how a row is brought into view; asked for before they are shown, it is done when they are. */
export function onReveal(f: Reveal | null): void {
  reveal = f ?? ((row) => void (pending = row));
  if (f && pending) {
    const row = pending;
    pending = null;
    f(row);
  }
}

export function revealRow(row: string): void {
  pending = null;
  reveal(row);
}
onReveal(null);

/** Asks what is at a place of the lanes, and why. */
export function ask(row: string, time: number): void {
  set({ point: { row, time }, at: time, chainOf: { row, time: Math.round(time) }, span: null, hop: 0 });
}

/** Whether a row of the lanes is one of spans. */
export const isSpans = (row: string): boolean => /^s\d+\./.test(row);

/** Chooses a span: where it is, what it was. `zoom`: the window becomes the span, with some room at both sides. */
export function chooseSpan(span: SpanShown, options: { zoom?: boolean; reveal?: boolean } = {}): void {
  const took = ((span.end - span.start) / 1e6).toFixed(3);
  set({
    span: span.id,
    chainOf: null,
    point: { row: span.row, time: span.start },
    at: span.start,
    hop: 0,
    said: `${span.name} ${span.argument}, ${took} ms`,
  });
  if (options.zoom) zoomToSpan(span);
  if (options.reveal) {
    set({ spans: true });
    revealRow(span.thread_row);
  }
}

export function zoomToSpan({ start, end }: { start: number; end: number }): void {
  const room = (end - start) * 0.15;
  zoomTo([start - room, end + room]);
}

/** Goes along the chain that is shown. */
export function nextHop(by: 1 | -1): void {
  const { chain, hop } = get();
  const hops = chain.answer?.hops ?? [];
  if (hops.length === 0) return;
  goToHop(Math.min(hops.length - 1, Math.max(0, hop + by)));
}

export function goToHop(index: number): void {
  const { chain } = get();
  const hop = chain.answer?.hops[index];
  const doc = chain.answer?.chain.hops[index];
  if (!hop) return;
  const did = doc?.did;
  // At work, where it was; else in its wait.
  const ran = did && did.to_s > did.from_s && (did.ran_s > 0 || !doc.wait);
  const wait = doc?.wait;
  const waited = wait ? ((wait.start_s + wait.woken_s) / 2) * 1e9 : (hop.from + hop.to) / 2;
  const time = ran && index > 0 ? ((did.from_s + did.to_s) / 2) * 1e9 : waited;
  set({ hop: index, said: `Hop ${index + 1}: ${hop.thread} ${hop.what} ${hop.function}` });
  if (did?.function) set({ code: { function: did.function, module: "" } });
  goTo(hop.row, time);
}

/** Puts the cursor of the lanes at a place and scrolls there. */
export function goTo(row: string | null, time: number, options: { tab?: boolean } = {}): void {
  const s = get();
  const [from, to] = current(s);
  if (time < from || time > to) {
    const half = (to - from) / 2;
    zoomTo([time - half, time + half]);
  }
  set({ point: row ? { row, time } : null, at: time, ...(options.tab ? { tab: "lanes" as const } : {}) });
  if (row) revealRow(row);
}
