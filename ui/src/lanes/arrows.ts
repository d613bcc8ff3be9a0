/** The chain on the lanes: each hop's stretch framed, and an arrow from who ended a wait to who waited. */

import type { ChainAnswer, Window } from "../host/api";
import { fit } from "../lib/canvas";
import { currentTheme } from "../lib/palette";
import { toX } from "../graph/axis";
import { ROW } from "./raster";

interface Area {
  left: number;
  width: number;
  height: number;
  window: Window;
  /** The middle of a row, in pixels; null if it is not there. */
  y: (row: string) => number | null;
}

export function drawChain(ctx: CanvasRenderingContext2D, chain: ChainAnswer, area: Area, hop: number): void {
  const theme = currentTheme();
  const x = (t: number) => area.left + toX(area.window, area.width, t);
  ctx.save();
  ctx.beginPath();
  ctx.rect(area.left, 0, area.width, area.height);
  ctx.clip();
  chain.hops.forEach((h, i) => {
    const y = h.row === null ? null : area.y(h.row);
    if (y === null) return;
    const wait = chain.chain.hops[i]?.wait;
    // The first hop is the wait that was asked for; of the others it is told what they did, and thinner how they waited.
    const [from, to] = i === 0 && wait ? [wait.start_s * 1e9, wait.woken_s * 1e9] : [h.from, h.to];
    ctx.strokeStyle = i === hop ? theme.accent : theme.text;
    const frame = (from: number, to: number, width: number) => {
      ctx.lineWidth = width;
      ctx.strokeRect(x(from), y - ROW / 2 + 1, Math.max(x(to) - x(from), 3), ROW - 2);
    };
    frame(from, to, i === hop ? 2.5 : 1.5);
    if (i > 0 && wait) frame(wait.start_s * 1e9, wait.woken_s * 1e9, 0.75);
  });
  for (let i = 0; i + 1 < chain.hops.length; i++) {
    const [to, from] = [chain.hops[i], chain.hops[i + 1]];
    const wait = chain.chain.hops[i]?.wait;
    if (!to?.row || !from?.row || from.row === to.row) continue;
    const [y0, y1] = [area.y(from.row), area.y(to.row)];
    if (y0 === null || y1 === null) continue;
    const owner = chain.chain.hops[i + 1]?.by === "owner";
    // An owner holds the lock all the while; a waker acts at one instant.
    const at = owner && chain.chain.at_s !== null ? chain.chain.at_s * 1e9 : wait ? wait.woken_s * 1e9 : to.to;
    arrow(ctx, x(at), y0, y1, owner);
  }
  ctx.restore();
}

function arrow(ctx: CanvasRenderingContext2D, x: number, from: number, to: number, dashed: boolean): void {
  const theme = currentTheme();
  const down = to > from ? 1 : -1;
  const end = to - down * 3;
  for (const [color, width] of [
    [theme.panel, 4.5],
    [theme.accent, 2],
  ] as const) {
    ctx.strokeStyle = color;
    ctx.lineWidth = width;
    ctx.setLineDash(dashed ? [5, 3] : []);
    ctx.beginPath();
    ctx.moveTo(x, from);
    ctx.lineTo(x, end);
    ctx.stroke();
  }
  ctx.setLineDash([]);
  ctx.fillStyle = theme.accent;
  ctx.beginPath();
  ctx.moveTo(x, to);
  ctx.lineTo(x - 4.5, to - down * 8);
  ctx.lineTo(x + 4.5, to - down * 8);
  ctx.fill();
  ctx.beginPath();
  ctx.arc(x, from, 3, 0, 7);
  ctx.fill();
}

/** Vertical lines: where the cursor stands, and where the mouse is. */
export function drawCursor(
  ctx: CanvasRenderingContext2D,
  window: Window,
  left: number,
  width: number,
  height: number,
  at: number | null,
  hover: number | null,
): void {
  const theme = currentTheme();
  if (hover !== null) {
    ctx.fillStyle = theme.dim;
    ctx.fillRect(Math.round(left + hover), 0, 1, height);
  }
  if (at === null || at < window[0] || at > window[1]) return;
  ctx.fillStyle = theme.accent;
  ctx.fillRect(Math.round(left + toX(window, width, at)), 0, 2, height);
}

/** A word within a stretch of a lane. */
export function drawName(ctx: CanvasRenderingContext2D, name: string, from: number, to: number, y: number): void {
  const text = fit(ctx, name, to - from - 6);
  if (!text) return;
  const theme = currentTheme();
  ctx.textAlign = "left";
  ctx.fillStyle = theme.name === "dark" ? "#ffffff" : "#0c1420";
  ctx.fillText(text, from + 3, y);
}
