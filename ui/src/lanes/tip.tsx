/** What lies below the mouse in a lane of spans. */

import type { Request, Row, SpanAt, SpanShown, Window } from "../host/api";
import { span as long } from "../lib/format";
import { useAsk } from "../state/ask";
import { placeOf } from "../views/span";
import { toTime } from "../graph/axis";

/** Pixels beside a span at which it is still meant. */
export const NEAR = 3;

export interface Pointed {
  x: number;
  y: number;
  row: Row;
}

export function placeAt(row: string, x: number, width: number, window: Window): Extract<Request, { ask: "span" }> {
  const pixel = (window[1] - window[0]) / width;
  return { ask: "span", row, time: Math.round(toTime(window, width, x)), slack: Math.ceil(pixel * NEAR) };
}

export function SpanTip({ at, width, window, left }: { at: Pointed | null; width: number; window: Window; left: number }) {
  const asked = useAsk<SpanAt>(at ? placeAt(at.row.id, at.x, width, window) : null, "span hover");
  const found = asked.answer?.json.span;
  if (!at || !found) return null;
  // Beside the mouse, on the side where there is room.
  const side = at.x > width / 2 ? { right: `${width - at.x + 12}px` } : { left: `${left + at.x + 14}px` };
  return (
    <div class="tip" style={{ top: `${at.y + 16}px`, ...side }} role="tooltip">
      <Lines span={found} />
    </div>
  );
}

function Lines({ span: s }: { span: SpanShown }) {
  return (
    <>
      <b>{s.name}</b> {long(s.end - s.start)}
      <div class="dim">{placeOf(s)}</div>
      {s.argument && <div class="code">{s.argument.length > 200 ? `${s.argument.slice(0, 200)}…` : s.argument}</div>}
      <div class="dim">{s.thread}; click: what it waited for</div>
    </>
  );
}
