/** The keyboard on the lanes. */

import type { AtAnswer, Row, SpanAt } from "../host/api";
import { ask as askHost } from "../state/ask";
import { ask, chooseSpan, current, isSpans, whole, zoomTo, zoomToSpan } from "../state/nav";
import { get, set } from "../state/store";
import { ROW } from "./raster";

interface Lanes {
  list: Row[];
  start: number;
  total: number;
  element: HTMLElement | null;
  page: number;
  askRow: (index: number) => Promise<Row | null>;
}

export function toggle(id: string): void {
  const { open } = get();
  set({ open: open.includes(id) ? open.filter((o) => o !== id) : [...open, id] });
}

const STEPS: Record<string, (l: Lanes) => number> = {
  ArrowDown: () => 1,
  ArrowUp: () => -1,
  PageDown: (l) => l.page,
  PageUp: (l) => -l.page,
  Home: (l) => -l.total,
  End: (l) => l.total,
};

export function laneKey(e: KeyboardEvent, l: Lanes): void {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const step = STEPS[e.key]?.(l);
  if (step !== undefined) {
    void move(l, step);
  } else {
    const { point } = get();
    const row = point ? l.list.find((r) => r.id === point.row) : undefined;
    const group = row && (row.kind === "program" || row.kind === "name");
    if ((e.key === "Enter" || e.key === " ") && row && group) toggle(row.id);
    else if (e.key === "Enter" && point && isSpans(point.row)) enterSpan();
    else if (e.key === "Enter" && point) ask(point.row, point.time);
    else if (e.key === "ArrowRight" || e.key === "ArrowLeft") {
      if (row && group && row.open !== (e.key === "ArrowRight")) toggle(row.id);
      else if (point) void change(e.key === "ArrowRight" ? 1 : -1);
      else return;
    } else return;
  }
  e.preventDefault();
  e.stopPropagation();
}

/** Goes `by` lanes down. */
async function move(l: Lanes, by: number): Promise<void> {
  const { point, at } = get();
  const [from, to] = current();
  const time = point?.time ?? (at !== null && at >= from && at <= to ? at : (from + to) / 2);
  const i = point ? l.list.findIndex((r) => r.id === point.row) : -1;
  const now = i >= 0 ? l.start + i : Math.floor((l.element?.scrollTop ?? 0) / ROW) - (by > 0 ? 1 : 0);
  const next = Math.min(l.total - 1, Math.max(0, now + by));
  const row = await l.askRow(next);
  if (!row) return;
  set({ point: { row: row.id, time }, at: time, said: `${row.label} ${row.detail}` });
  const element = l.element;
  if (!element) return;
  const y = next * ROW;
  if (y < element.scrollTop) element.scrollTop = y;
  else if (y + ROW > element.scrollTop + element.clientHeight) element.scrollTop = y + ROW - element.clientHeight;
}

/** The window becomes the span that is chosen. */
function enterSpan(): void {
  const span = get().spanTold.answer;
  if (span) zoomToSpan(span);
  else void change(1);
}

/** Goes to the next or previous span of the lane. */
async function nextSpan(row: string, time: number, by: 1 | -1): Promise<void> {
  const { span } = (await askHost<SpanAt>({ ask: "span", row, time: Math.round(time), step: by }, "step")).json;
  if (!span) return;
  const [from, to] = current();
  if (span.start < from || span.start > to) zoomTo([span.start - (to - from) / 2, span.start + (to - from) / 2], true);
  // A lane of a group has spans of several threads: it stays the lane.
  chooseSpan({ ...span, row });
}

/** Goes to the lane's next or previous change. */
async function change(by: 1 | -1): Promise<void> {
  const { point, here } = get();
  if (!point) return;
  if (isSpans(point.row)) return nextSpan(point.row, point.time, by);
  let now = here.answer;
  if (!now || now.row !== point.row || point.time < now.from || point.time > now.to) {
    now = (await askHost<AtAnswer>({ ask: "at", row: point.row, time: Math.round(point.time) }, "step")).json;
  }
  const [, end] = whole();
  const edge = by > 0 ? now.to : now.from - 1;
  if (edge < 0 || edge >= end) return;
  const next = (await askHost<AtAnswer>({ ask: "at", row: point.row, time: edge }, "step")).json;
  // Where the state begins: the eye finds the edge, and the next step leaves it.
  const time = Math.min(Math.max(next.from, 0), end - 1);
  const [from, to] = current();
  if (time < from || time > to) zoomTo([time - (to - from) / 2, time + (to - from) / 2], true);
  ask(point.row, time);
  set({ said: `${next.state}` });
}
