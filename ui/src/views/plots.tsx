/** Results of lab, scale, load and fleet: what was measured as points with their spread, fitted laws as lines. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Plot, PlotAxis, PlotsAnswer, PlotSeries } from "../host/api";
import { begin, useBox, useThemed } from "../lib/canvas";
import { currentTheme, type Theme } from "../lib/palette";
import { useAsk } from "../state/ask";
import { use } from "../state/store";
import { ticks } from "../graph/axis";

const COLORS: readonly (keyof Theme)[] = ["busy", "held", "runnable", "disk", "spin", "outside", "mixed", "lost"];
const SHAPES = ["circle", "square", "triangle", "diamond", "cross"] as const;

export function Plots() {
  const trace = use((s) => s.trace);
  const { answer, error, loading } = useAsk<PlotsAnswer>({ ask: "plots" }, "plots", trace);
  if (error) return <p class="note bad">{error}</p>;
  if (!answer) return <p class="note">{loading ? "Reading …" : ""}</p>;
  const { plots, title } = answer.json;
  return (
    <div class="view plots" tabIndex={0} aria-label={title}>
      <h1>{title}</h1>
      {plots.length === 0 && <p class="note">This result has nothing to draw.</p>}
      <div class="grid">
        {plots.map((p, i) => (
          <Figure key={i} plot={p} after={plots[i - 1]} />
        ))}
      </div>
    </div>
  );
}

interface Scale {
  lo: number;
  hi: number;
  log: boolean;
  /** Numbers of threads and the like: nothing lies between two of them. */
  whole?: boolean;
}

/** Numbers that are all whole, such as those of threads, with room at both ends. */
function counts(values: number[], log: boolean): Scale | null {
  if (log || values.length === 0 || !values.every(Number.isInteger)) return null;
  const [lo, hi] = [Math.min(...values), Math.max(...values)];
  const room = lo === hi ? 1 : (hi - lo) * 0.08;
  return { lo: lo - room, hi: hi + room, log, whole: true };
}

/** Round ends around the values; a logarithmic axis keeps to what is above nothing. */
function scale(values: number[], log: boolean): Scale {
  const seen = values.filter((v) => Number.isFinite(v) && (!log || v > 0));
  if (seen.length === 0) return { lo: log ? 1 : 0, hi: log ? 10 : 1, log };
  const [lo, hi] = [Math.min(...seen), Math.max(...seen)];
  if (log) return { lo: lo / 1.15, hi: hi * 1.15, log };
  const from = lo > 0 && lo < hi * 0.6 ? 0 : lo;
  return { lo: Math.min(from, lo), hi: hi + (hi - from || 1) * 0.05, log };
}

const place = (s: Scale, v: number): number =>
  s.log ? Math.log(v / s.lo) / Math.log(s.hi / s.lo) : (v - s.lo) / (s.hi - s.lo || 1);

function marks(s: Scale, wanted: number): number[] {
  if (!s.log) return ticks([s.lo, s.hi], wanted).filter((v) => !s.whole || Number.isInteger(v));
  const all: number[] = [];
  for (let d = Math.floor(Math.log10(s.lo)); d <= Math.ceil(Math.log10(s.hi)); d++) {
    const by = s.hi / s.lo > 1e4 ? [1] : [1, 2, 5];
    for (const m of by) {
      const v = m * 10 ** d;
      if (v >= s.lo && v <= s.hi) all.push(v);
    }
  }
  return all;
}

/** Short, with the usual letters for large numbers. */
export function short(v: number): string {
  const size = Math.abs(v);
  for (const [by, letter] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ] as const) {
    if (size >= by) return `${Number((v / (letter === "k" ? 1e3 : by)).toPrecision(3))} ${letter}`;
  }
  return String(Number(v.toPrecision(3)));
}

/** What was said of the experiment with the figure before is not said again. */
function Figure({ plot, after }: { plot: Plot; after: Plot | undefined }) {
  const [ref, box] = useBox<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemed();
  const [hover, setHover] = useState<{ x: number; y: number } | null>(null);
  const axes = useMemo(() => {
    const xs = plot.series.flatMap((s) => s.points.map((p) => p.x));
    const ys = plot.series.flatMap((s) => s.points.flatMap((p) => [p.y, p.low ?? p.y, p.high ?? p.y]));
    const [x, y] = [plot.x.log ?? false, plot.y.log ?? false];
    return { x: counts(plot.x.ends ?? xs, x) ?? scale(plot.x.ends ?? xs, x), y: scale(plot.y.ends ?? ys, y) };
  }, [plot]);
  const area = { left: 58, top: 8, right: 12, bottom: 34 };
  const w = box.width - area.left - area.right;
  const h = box.height - area.top - area.bottom;
  const X = (v: number) => area.left + place(axes.x, v) * w;
  const Y = (v: number) => area.top + (1 - place(axes.y, v)) * h;
  const near = hover && nearest(plot, hover, X, Y);
  useEffect(() => {
    const ctx = canvas.current && box.width > 0 ? begin(canvas.current, box) : null;
    if (!ctx) return;
    const theme = currentTheme();
    ctx.fillStyle = theme.dim;
    ctx.textAlign = "center";
    for (const v of marks(axes.x, w / 70)) {
      ctx.fillStyle = theme.grid;
      ctx.fillRect(X(v), area.top, 1, h);
      ctx.fillStyle = theme.dim;
      ctx.fillText(on(plot.x, v), X(v), area.top + h + 9);
    }
    ctx.fillText(label(plot.x), area.left + w / 2, area.top + h + 24);
    ctx.textAlign = "right";
    for (const v of marks(axes.y, h / 36)) {
      ctx.fillStyle = theme.grid;
      ctx.fillRect(area.left, Y(v), w, 1);
      ctx.fillStyle = theme.dim;
      ctx.fillText(short(v), area.left - 5, Y(v));
    }
    ctx.save();
    ctx.translate(9, area.top + h / 2);
    ctx.rotate(-Math.PI / 2);
    ctx.textAlign = "center";
    ctx.fillText(label(plot.y), 0, 0);
    ctx.restore();
    plot.series.forEach((s, i) => drawSeries(ctx, s, i, theme, X, Y));
    if (near) {
      ctx.strokeStyle = theme.accent;
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.arc(X(near.x), Y(near.y), 7, 0, 7);
      ctx.stroke();
    }
  }, [plot, box, theme, near?.x, near?.y, near?.series]);
  return (
    <figure>
      <figcaption>
        <b>{plot.title}</b>
        {plot.verdict && plot.verdict !== after?.verdict && <p>{plot.verdict}</p>}
      </figcaption>
      <p class="keys">
        {plot.series.map((s, i) => (
          <span key={s.name + i}>
            <Marker index={i} line={s.style === "line"} /> {s.name}
          </span>
        ))}
      </p>
      <div
        class="plot"
        ref={ref}
        onPointerMove={(e) => {
          const r = e.currentTarget.getBoundingClientRect();
          setHover({ x: e.clientX - r.left, y: e.clientY - r.top });
        }}
        onPointerLeave={() => setHover(null)}
      >
        <canvas ref={canvas} role="img" aria-label={`${plot.title}. ${plot.verdict}`} />
      </div>
      <p class="dim readout">
        {near
          ? `${near.name}: ${label(plot.x)} ${on(plot.x, near.x)}, ${label(plot.y)} ${short(near.y)}${
              near.low !== undefined && near.high !== undefined ? ` (${short(near.low)} – ${short(near.high)})` : ""
            }`
          : plot.notes.filter((note) => !after?.notes.includes(note)).join(" ")}
      </p>
    </figure>
  );
}

/** A place on an axis, as it is written. */
const on = (axis: PlotAxis, v: number) => axis.names?.[v] ?? short(v);

const label = (axis: { label: string; unit: string }) => (axis.unit ? `${axis.label} (${axis.unit})` : axis.label);

type At = (v: number) => number;

function nearest(plot: Plot, at: { x: number; y: number }, X: At, Y: At) {
  let best: { x: number; y: number; low?: number; high?: number; name: string; series: number } | null = null;
  let least = 400;
  plot.series.forEach((s, series) => {
    for (const p of s.style === "line" ? [] : s.points) {
      const far = (X(p.x) - at.x) ** 2 + (Y(p.y) - at.y) ** 2;
      if (far < least) {
        least = far;
        best = { ...p, name: s.name, series };
      }
    }
  });
  return best as { x: number; y: number; low?: number; high?: number; name: string; series: number } | null;
}

function drawSeries(ctx: CanvasRenderingContext2D, s: PlotSeries, i: number, theme: Theme, X: At, Y: At): void {
  const color = theme[COLORS[i % COLORS.length] ?? "busy"];
  ctx.strokeStyle = ctx.fillStyle = color;
  if (s.style !== "dots") {
    ctx.lineWidth = s.style === "line" ? 1.75 : 1;
    ctx.setLineDash(s.style === "line" ? [] : [2, 3]);
    ctx.beginPath();
    s.points.forEach((p, k) => (k === 0 ? ctx.moveTo(X(p.x), Y(p.y)) : ctx.lineTo(X(p.x), Y(p.y))));
    ctx.stroke();
    ctx.setLineDash([]);
  }
  if (s.style === "line") return;
  for (const p of s.points) {
    if (p.low !== undefined && p.high !== undefined) ctx.fillRect(X(p.x) - 0.75, Y(p.high), 1.5, Y(p.low) - Y(p.high));
    shape(ctx, SHAPES[i % SHAPES.length] ?? "circle", X(p.x), Y(p.y));
  }
}

function shape(ctx: CanvasRenderingContext2D, kind: (typeof SHAPES)[number], x: number, y: number): void {
  ctx.beginPath();
  if (kind === "circle") ctx.arc(x, y, 3.5, 0, 7);
  else if (kind === "square") ctx.rect(x - 3, y - 3, 6, 6);
  else if (kind === "triangle") polygon(ctx, [x, y - 4, x + 4, y + 3, x - 4, y + 3]);
  else if (kind === "diamond") polygon(ctx, [x, y - 4.5, x + 4.5, y, x, y + 4.5, x - 4.5, y]);
  else {
    ctx.fillRect(x - 4, y - 1, 8, 2);
    ctx.fillRect(x - 1, y - 4, 2, 8);
  }
  ctx.fill();
}

function polygon(ctx: CanvasRenderingContext2D, at: number[]): void {
  for (let i = 0; i < at.length; i += 2) ctx[i === 0 ? "moveTo" : "lineTo"](at[i] ?? 0, at[i + 1] ?? 0);
  ctx.closePath();
}

function Marker({ index, line }: { index: number; line: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemed();
  useEffect(() => {
    const ctx = canvas.current && begin(canvas.current, { width: 18, height: 12 });
    if (!ctx) return;
    ctx.fillStyle = ctx.strokeStyle = currentTheme()[COLORS[index % COLORS.length] ?? "busy"];
    if (line) ctx.fillRect(0, 5, 18, 2);
    else shape(ctx, SHAPES[index % SHAPES.length] ?? "circle", 9, 6);
  }, [index, line, theme]);
  return <canvas class="patch" ref={canvas} aria-hidden="true" />;
}
