/** The stack of the use graph. An answer to an older window is drawn where it belongs in the new one. */

import type { UseAnswer, Window } from "../host/api";
import type { Answer } from "../host/frame";
import { currentTheme, fill, heldLook, PARTS, type Pattern, type Theme } from "../lib/palette";
import { get } from "../state/store";
import { toX } from "./axis";

/** The finding that a series is about, `rest` for all others together; null if it is about none. */
export function isHeld(series: string): string | null {
  const name = series.replace(/^held[:_]/, "");
  return name === "rest" || /^f\d+$/.test(name) ? name : null;
}

export function seriesName(series: string): string {
  const held = isHeld(series);
  if (held === "rest") return "held up by others";
  if (held) return `held up by ${held}`;
  if (series === "idle") return "idle";
  return PARTS[series]?.name ?? series;
}

export function look(series: string, chosen: string | null): { key: keyof Theme; pattern: Pattern } {
  const held = isHeld(series);
  if (!held) return PARTS[series] ?? { key: "noWork", pattern: "solid" };
  if (held === "rest") return { key: "heldSoft", pattern: "dots" };
  return heldLook(Number(held.slice(1)) - 1, chosen === null ? null : held === chosen);
}

interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export function drawStack(
  ctx: CanvasRenderingContext2D,
  answer: Answer<UseAnswer>,
  window: Window,
  at: Rect,
  chosen: string | null,
): void {
  const { px, series, cpus } = answer.json;
  const asked = answer.json.window;
  ctx.save();
  ctx.beginPath();
  ctx.rect(at.x, at.y, at.width, at.height);
  ctx.clip();
  const left = at.x + toX(window, at.width, asked[0]);
  const wide = (at.x + toX(window, at.width, asked[1]) - left) / px;
  const scale = at.height / Math.max(1, cpus);
  const floor = at.y + at.height;
  const below = new Float32Array(px);
  const labels: { text: string; x: number; y: number }[] = [];
  for (const name of series) {
    const values = answer.f32(name);
    const { key, pattern } = look(name, chosen);
    if (name !== "no_work" && name !== "idle") {
      ctx.fillStyle = fill(ctx, key, pattern);
      area(ctx, values, below, left, wide, floor, scale);
    }
    const held = isHeld(name);
    const label = held && held !== "rest" ? roomiest(values, below, wide, scale) : null;
    for (let i = 0; i < px; i++) below[i] = (below[i] ?? 0) + (values[i] ?? 0);
    if (label) labels.push({ text: held ?? "", x: left + label.x * wide, y: floor - label.y * scale });
  }
  if (answer.has("overlay")) line(ctx, answer.f32("overlay"), left, wide, floor, scale);
  for (const l of labels) tag(ctx, l.text, l.x, l.y, l.text === chosen);
  ctx.restore();
}

function area(
  ctx: CanvasRenderingContext2D,
  values: Float32Array,
  below: Float32Array,
  left: number,
  wide: number,
  floor: number,
  scale: number,
): void {
  const n = values.length;
  ctx.beginPath();
  // Steps: a pixel's value holds for the whole pixel. Stretches without any are left out.
  for (let i = 0; i < n; i++) {
    if (!((values[i] ?? 0) > 0)) continue;
    let end = i;
    while (end < n && (values[end] ?? 0) > 0) end++;
    ctx.moveTo(left + i * wide, floor - (below[i] ?? 0) * scale);
    for (let k = i; k < end; k++) {
      const y = floor - ((below[k] ?? 0) + (values[k] ?? 0)) * scale;
      ctx.lineTo(left + k * wide, y);
      ctx.lineTo(left + (k + 1) * wide, y);
    }
    for (let k = end - 1; k >= i; k--) {
      const y = floor - (below[k] ?? 0) * scale;
      ctx.lineTo(left + (k + 1) * wide, y);
      ctx.lineTo(left + k * wide, y);
    }
    ctx.closePath();
    i = end;
  }
  ctx.fill();
}

/** Where a label fits best: the middle of the widest stretch that is high enough for it. */
function roomiest(values: Float32Array, below: Float32Array, wide: number, scale: number): { x: number; y: number } | null {
  let best: { x: number; y: number } | null = null;
  let most = 22 / Math.max(wide, 1e-9);
  for (let i = 0; i < values.length; i++) {
    if ((values[i] ?? 0) * scale < 13) continue;
    let end = i;
    while (end < values.length && (values[end] ?? 0) * scale >= 13) end++;
    if (end - i > most) {
      most = end - i;
      const middle = (i + end) >> 1;
      best = { x: middle, y: (below[middle] ?? 0) + (values[middle] ?? 0) / 2 };
    }
    i = end;
  }
  return best;
}

function tag(ctx: CanvasRenderingContext2D, text: string, x: number, y: number, chosen: boolean): void {
  const theme = currentTheme();
  const w = ctx.measureText(text).width + 8;
  ctx.fillStyle = chosen ? theme.accent : theme.panel;
  ctx.fillRect(Math.round(x - w / 2), Math.round(y - 7), Math.round(w), 14);
  ctx.fillStyle = chosen ? theme.panel : theme.text;
  ctx.textAlign = "center";
  ctx.fillText(text, x, y);
}

/** How much a line may rise and fall on average, in pixels for each pixel of its width: more of it is a black ground. */
const MOST_RESTLESS = 3;

/** The mean of as many neighbours as it takes for a calm line. */
export function calm(values: Float32Array, wide: number, scale: number): Float32Array {
  const restless = (v: Float32Array): number => {
    let sum = 0;
    for (let i = 1; i < v.length; i++) sum += Math.abs((v[i] ?? 0) - (v[i - 1] ?? 0));
    return (sum * scale) / Math.max(1, v.length * wide);
  };
  let calmer = values;
  for (let group = 2; group <= 32 && restless(calmer) > MOST_RESTLESS; group *= 2) {
    calmer = Float32Array.from(values);
    for (let i = 0; i < values.length; i += group) {
      const part = values.subarray(i, i + group);
      calmer.fill(part.reduce((a, b) => a + b, 0) / part.length, i, i + group);
    }
  }
  return calmer;
}

/** What the culprit used: a line with a halo, so that it shows on every ground. */
function line(ctx: CanvasRenderingContext2D, all: Float32Array, left: number, wide: number, floor: number, scale: number): void {
  const theme = currentTheme();
  const values = calm(all, wide, scale);
  ctx.beginPath();
  for (let i = 0; i < values.length; i++) {
    const y = floor - (values[i] ?? 0) * scale;
    if (i === 0) ctx.moveTo(left, y);
    else ctx.lineTo(left + i * wide, y);
    ctx.lineTo(left + (i + 1) * wide, y);
  }
  ctx.lineJoin = "round";
  ctx.strokeStyle = theme.panel;
  ctx.lineWidth = 4;
  ctx.stroke();
  ctx.strokeStyle = theme.overlay;
  ctx.lineWidth = 1.75;
  ctx.stroke();
}

/** Whether what is known of the explanation already splits what stood still. */
export const isSplit = (): boolean => get().explain !== null;
