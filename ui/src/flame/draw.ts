/** Draws a flame graph. */

import { fit } from "../lib/canvas";
import { blend, currentTheme, type Theme } from "../lib/palette";
import type { FlameKind } from "../state/store";
import { nameOf, type Box, type Tree } from "./tree";

export const HEIGHT = 18;

interface Drawing {
  t: Tree;
  boxes: Box[];
  of: FlameKind;
  marked: Set<number>;
  cursor: number | null;
  hover: number | null;
  scroll: number;
  width: number;
  height: number;
}

const BASE: Record<FlameKind, keyof Theme> = { cpu: "busy", off: "sleep", wakers: "runnable", blame: "held" };

/** Alike names are alike in every graph; shades only keep neighbours apart. */
function shade(name: string): number {
  let h = 2166136261;
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 16777619);
  return ((h >>> 8) & 0xff) / 255;
}

const css = ([r, g, b]: readonly [number, number, number]) => `rgb(${r},${g},${b})`;

function color(d: Drawing, node: number, theme: Theme): string {
  const { t } = d;
  if (t.before) {
    const was = (t.before[node] ?? 0) / (t.totalBefore || 1);
    const now = (t.value[node] ?? 0) / (t.total || 1);
    // By how much of all it changed, not by which factor: small frames stay grey.
    const by = Math.max(-1, Math.min(1, (now - was) * 8));
    return css(blend(by > 0 ? theme.held : theme.busy, theme.raised, Math.min(1, Math.abs(by)) * 0.85));
  }
  const strength = theme.name === "dark" ? 0.42 + 0.25 * shade(nameOf(t, node)) : 0.3 + 0.25 * shade(nameOf(t, node));
  return css(blend(theme[BASE[d.of]], theme.panel, strength));
}

export function draw(ctx: CanvasRenderingContext2D, d: Drawing): void {
  const theme = currentTheme();
  ctx.textAlign = "left";
  for (const box of d.boxes) {
    const y = box.row * HEIGHT - d.scroll;
    if (y < -HEIGHT || y > d.height) continue;
    const marked = d.marked.size > 0 && d.marked.has(d.t.name[box.node] ?? -1);
    const w = Math.max(0.5, box.width - (box.width > 3 ? 1 : 0));
    ctx.fillStyle = marked ? theme.spin : color(d, box.node, theme);
    ctx.globalAlpha = d.marked.size > 0 && !marked ? 0.55 : 1;
    ctx.fillRect(box.x, y, w, HEIGHT - 1);
    ctx.globalAlpha = 1;
    if (box.node === d.cursor || box.node === d.hover) {
      ctx.strokeStyle = box.node === d.cursor ? theme.accent : theme.text;
      ctx.lineWidth = box.node === d.cursor ? 2 : 1;
      ctx.strokeRect(box.x + 1, y + 1, Math.max(1, w - 2), HEIGHT - 3);
    }
    if (box.width < 24) continue;
    const name = nameOf(d.t, box.node);
    const change = d.t.before && box.width > 120 ? ` ${factor(d.t, box.node)}` : "";
    const text = fit(ctx, name + change, box.width - 8);
    if (!text) continue;
    ctx.fillStyle = marked ? "#14181d" : theme.text;
    ctx.fillText(text, box.x + 4, y + HEIGHT / 2);
  }
}

/** The change in words, since colour alone must not say it. */
function factor(t: Tree, node: number): string {
  const was = t.before?.[node] ?? 0;
  const now = t.value[node] ?? 0;
  if (was <= 0) return now > 0 ? "(new)" : "";
  const by = now / was - 1;
  return Math.abs(by) < 0.005 ? "" : `(${by > 0 ? "+" : "−"}${Math.abs(by * 100).toFixed(by > 9.95 ? 0 : 1)} %)`;
}
