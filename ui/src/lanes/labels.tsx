/** The names left of the lanes. */

import type { Row } from "../host/api";
import { count, many, spanS } from "../lib/format";
import { ask, current } from "../state/nav";
import { get, set } from "../state/store";
import { toggle } from "./keys";
import { ROW } from "./raster";

/** Pixels for names. */
export const LABEL = 232;

export function Labels({ list, start, scroll, chosen }: { list: Row[]; start: number; scroll: number; chosen: string | null }) {
  return (
    <div class="labels">
      {list.map((row, i) => (
        <Label key={row.id} row={row} top={(start + i) * ROW - scroll} chosen={row.id === chosen} />
      ))}
    </div>
  );
}

function Label({ row, top, chosen }: { row: Row; top: number; chosen: boolean }) {
  const group = row.kind === "program" || row.kind === "name";
  const spans = row.kind === "spans";
  const figures = spans ? [] : [
    row.blame_s > 0 && `held others up for ${spanS(row.blame_s)} of CPU time`,
    row.kind !== "cpu" && `ran ${spanS(row.cpu_s)}`,
    row.held_s > 0 && `was held up for ${spanS(row.held_s)}`,
  ].filter(Boolean);
  return (
    <div
      id={`lane-${row.id}`}
      class={`label${chosen ? " on" : ""}${spans ? " spans" : ""}`}
      role="treeitem"
      aria-level={row.depth + 1}
      aria-expanded={group ? row.open : undefined}
      aria-selected={chosen}
      style={{ top: `${top}px`, paddingLeft: `${4 + row.depth * 12}px` }}
      title={spans ? `${many(Number(row.detail), "span")}: units of work of the lane above. ← → go from one to the next, Enter shows it.` : `${row.label}  ${row.detail}\n${figures.join("\n")}`}
      onPointerDown={(e) => e.stopPropagation()}
      onClick={() => {
        if (group) toggle(row.id);
        else if (spans) set({ point: { row: row.id, time: get().at ?? current()[0] } });
        else ask(row.id, get().at ?? (current()[0] + current()[1]) / 2);
      }}
    >
      <span class="twisty" aria-hidden="true">
        {group ? (row.open ? "▾" : "▸") : ""}
      </span>
      <span class="text">
        {row.label}
        {group && row.threads > 1 && <span class="dim"> ×{count(row.threads)}</span>}
        {!group && row.detail && <span class="dim"> {row.detail}</span>}
      </span>
      {row.blame_s > 0 ? <span class="blame">{spanS(row.blame_s)}</span> : row.kind !== "cpu" && !spans && <span class="dim">{spanS(row.cpu_s)}</span>}
    </div>
  );
}
