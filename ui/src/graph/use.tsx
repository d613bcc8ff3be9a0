/** CPU use over time: what the CPUs did, stacked, and laid over it what the culprit or the selection used. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Request, UseAnswer, Window } from "../host/api";
import type { Answer } from "../host/frame";
import { begin, FONT, useBox, useThemed } from "../lib/canvas";
import { count, instant } from "../lib/format";
import { currentTheme } from "../lib/palette";
import { useAsk } from "../state/ask";
import { chooseFinding, current, findingOf, whole, zoomTo } from "../state/nav";
import { get, set, use } from "../state/store";
import { timeTicks, toTime, toX } from "./axis";
import { Patch } from "../views/patch";
import { drawStack, isHeld, look, seriesName } from "./stack";
import { useGestures } from "./gestures";

const AXIS = 18;
const LEFT = 0;

export interface UseAt {
  time: number;
  values: { series: string; value: number }[];
  cpus: number;
}

/** What the CPUs did in the pixel at `time`. */
export function at(answer: Answer<UseAnswer>, time: number): UseAt | null {
  const { window, px, series, cpus } = answer.json;
  const i = Math.floor(((time - window[0]) / (window[1] - window[0])) * px);
  if (i < 0 || i >= px) return null;
  return { time, cpus, values: series.map((s) => ({ series: s, value: answer.f32(s)[i] ?? 0 })) };
}

/** The finding that held up most CPUs there. */
export function heldMost(here: UseAt | null): string | null {
  let best: string | null = null;
  let most = 0.02;
  for (const { series, value } of here?.values ?? []) {
    const f = isHeld(series);
    if (f && f !== "rest" && value > most) {
      best = f;
      most = value;
    }
  }
  return best;
}

/**
 * The finding that costs most of those with a window there: where other programs used the CPUs that stood free, none is
 * idle, and yet threads were held up.
 */
function coveredBy(time: number): string | null {
  const t = time / 1e9;
  const all = get().explain?.findings ?? [];
  return all.find((f) => !BENIGN.has(f.kind) && f.windows.some(([from, to]) => from <= t && t <= to))?.id ?? null;
}

/** Kinds for which nobody was held up. */
const BENIGN = new Set(["cpu-bound", "idle-by-design"]);

let latest: Answer<UseAnswer> | null = null;

/** What the graph says of an instant; for others who speak of it. */
export const useAt = (time: number): UseAt | null => (latest ? at(latest, time) : null);

export function UseGraph() {
  const s = use((s) => ({
    window: s.window,
    finding: s.finding,
    at: s.at,
    selection: s.selection,
    summary: s.summary,
    explain: s.explain,
    trace: s.trace,
  }));
  const [ref, box] = useBox<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemed();
  const [hover, setHover] = useState<number | null>(null);
  const window = current();
  const px = Math.max(1, box.width);
  const request: Request | null =
    box.width > 0 && s.summary
      ? {
          ask: "use",
          window,
          px,
          ...(s.finding ? { finding: s.finding } : {}),
          ...(s.selection ? { overlay: s.selection } : {}),
        }
      : null;
  const asked = useAsk<UseAnswer>(request, `use${s.explain ? "" : " first"}`);
  if (asked.answer) latest = asked.answer;

  const [dragging, handlers] = useGestures({
    width: px,
    window,
    move: (x) => setHover(x),
    click: (x) => clickAt(toTime(window, px, x)),
  });

  useEffect(() => {
    if (!canvas.current || box.width === 0) return;
    const ctx = begin(canvas.current, box);
    if (!ctx) return;
    draw(ctx, box.width, box.height, window, asked.answer, s.finding, s.at, hover, dragging);
  }, [asked.answer, box, window[0], window[1], s.finding, s.at, hover, dragging, theme]);

  const t = hover === null ? s.at : toTime(window, px, hover);
  const here = t === null || !asked.answer ? null : at(asked.answer, t);
  return (
    <section class="use" aria-label="CPU use over time">
      <Readout here={here} overlay={asked.answer?.json.overlay?.label ?? null} answer={asked.answer} />
      <Overview />
      <div
        class="plot"
        ref={ref}
        tabIndex={0}
        role="application"
        aria-label="CPU use over time. Arrow keys move the cursor, Enter asks who held the CPUs up there, W and S zoom, A and D move."
        data-focus="use"
        onKeyDown={(e) => key(e, px)}
        {...handlers}
        onPointerLeave={() => setHover(null)}
      >
        <canvas ref={canvas} />
        {asked.error && <p class="note bad">{asked.error}</p>}
      </div>
    </section>
  );
}

/** A click on the graph: puts the cursor there, and chooses the finding that held most up. */
export function clickAt(time: number): void {
  const f = heldMost(useAt(time)) ?? coveredBy(time);
  if (f) chooseFinding(f, { keepWindow: true, at: time });
  else {
    const chainOf = { time: Math.round(time) };
    set({ at: time, point: null, finding: null, selection: null, chainOf, hop: 0, said: "No cause is known here." });
  }
}

function key(e: KeyboardEvent, px: number): void {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const s = get();
  const [from, to] = current(s);
  const at = s.at !== null && s.at >= from && s.at <= to ? s.at : (from + to) / 2;
  const by = ((to - from) / px) * (e.shiftKey ? 40 : 8);
  if (e.key === "ArrowLeft" || e.key === "ArrowRight") {
    const next = Math.min(to, Math.max(from, at + (e.key === "ArrowLeft" ? -by : by)));
    set({ at: next, said: inWords(useAt(next)) });
  } else if (e.key === "Enter" || e.key === " ") {
    clickAt(at);
  } else {
    return;
  }
  e.preventDefault();
  e.stopPropagation();
}

function inWords(here: UseAt | null): string {
  if (!here) return "";
  return here.values
    .filter((v) => v.value > 0.02)
    .map((v) => `${seriesName(v.series)} ${v.value.toFixed(1)}`)
    .join(", ");
}

function draw(
  ctx: CanvasRenderingContext2D,
  width: number,
  height: number,
  window: Window,
  answer: Answer<UseAnswer> | null,
  finding: string | null,
  cursor: number | null,
  hover: number | null,
  drag: readonly [number, number] | null,
): void {
  const theme = currentTheme();
  const plot = height - AXIS;
  if (answer) drawStack(ctx, answer, window, { x: LEFT, y: 2, width, height: plot - 2 }, finding);
  drawCpus(ctx, answer?.json.cpus ?? 0, width, plot);
  ctx.fillStyle = theme.dim;
  ctx.font = FONT;
  ctx.textAlign = "center";
  for (const { at, text } of timeTicks(window, width)) {
    const x = toX(window, width, at);
    ctx.fillStyle = theme.grid;
    ctx.fillRect(x, 2, 1, plot - 2);
    ctx.fillStyle = theme.dim;
    const half = ctx.measureText(text).width / 2 + 2;
    if (x - half > 0 && x + half < width) ctx.fillText(text, x, plot + AXIS / 2 + 1);
  }
  for (const loss of get().summary?.losses ?? []) {
    // What is lost somewhere in all of it has no place.
    if (loss.from <= 0 && loss.to >= whole()[1]) continue;
    const x = toX(window, width, loss.from);
    const w = Math.max(2, toX(window, width, loss.to) - x);
    if (x > width || x + w < 0) continue;
    ctx.fillStyle = theme.bad;
    ctx.fillRect(x, plot - 3, w, 3);
  }
  if (drag) {
    ctx.fillStyle = theme.accent;
    ctx.globalAlpha = 0.22;
    ctx.fillRect(Math.min(...drag), 0, Math.abs(drag[1] - drag[0]), plot);
    ctx.globalAlpha = 1;
  }
  const line = (t: number, color: string, w: number) => {
    ctx.fillStyle = color;
    ctx.fillRect(Math.round(toX(window, width, t)), 0, w, plot);
  };
  if (hover !== null) line(toTime(window, width, hover), theme.dim, 1);
  if (cursor !== null && cursor >= window[0] && cursor <= window[1]) {
    line(cursor, theme.accent, 2);
    const x = toX(window, width, cursor);
    ctx.beginPath();
    ctx.moveTo(x - 5, 0);
    ctx.lineTo(x + 7, 0);
    ctx.lineTo(x + 1, 8);
    ctx.fillStyle = theme.accent;
    ctx.fill();
  }
}

/** How many CPUs: at the right edge, over the stack, on a ground of its own. */
function drawCpus(ctx: CanvasRenderingContext2D, cpus: number, width: number, plot: number): void {
  if (cpus < 1) return;
  const theme = currentTheme();
  const by = cpus <= 4 ? 1 : 2 ** Math.ceil(Math.log2(cpus / 4));
  ctx.textAlign = "right";
  for (let n = by; n <= cpus; n += by) {
    const y = 2 + (plot - 2) * (1 - n / cpus);
    ctx.fillStyle = theme.grid;
    ctx.fillRect(0, y, width, 1);
    const text = n === cpus ? `${n} CPU${n === 1 ? "" : "s"}` : String(n);
    const w = ctx.measureText(text).width + 6;
    const ty = Math.max(8, y + 7);
    ctx.globalAlpha = 0.82;
    ctx.fillStyle = theme.panel;
    ctx.fillRect(width - w - 1, ty - 7, w, 14);
    ctx.globalAlpha = 1;
    ctx.fillStyle = theme.text;
    ctx.fillText(text, width - 4, ty);
  }
}

/** Left of the graph: the values at the cursor or the mouse; it is the graph's legend, too. */
function Readout({ here, overlay, answer }: { here: UseAt | null; overlay: string | null; answer: Answer<UseAnswer> | null }) {
  const { finding, explain } = use((s) => ({ finding: s.finding, explain: s.explain }));
  const [from, to] = current();
  const over = here && overlay && answer ? overlayAt(answer, here.time) : null;
  const lost = here ? (get().summary?.losses ?? []).filter((l) => l.from <= here.time && here.time <= l.to && l.to - l.from < whole()[1]) : [];
  const shown = here?.values.filter((v) => v.value > 0.004).reverse() ?? [];
  return (
    <div class="readout">
      <p>
        <b>CPU use</b> <span class="dim">{here ? `at ${instant(here.time, to - from)}` : ""}</span>
      </p>
      {here ? (
        <table>
          <tbody>
            {shown.map((v) => (
              <tr key={v.series} class={isHeld(v.series) === finding && finding ? "on" : ""}>
                <td>
                  <Patch {...patch(v.series, finding)} />
                </td>
                <td>{seriesName(v.series)}</td>
                <td class="num">{v.value.toFixed(2)}</td>
              </tr>
            ))}
            {over !== null && (
              <tr>
                <td>
                  <span class="over" />
                </td>
                <td>of that: {overlay}</td>
                <td class="num">{over.toFixed(2)}</td>
              </tr>
            )}
          </tbody>
        </table>
      ) : (
        <p class="dim">
          {explain ? "Click where CPUs stand still: who held them up is said below, and at the left." : "Asking what held the CPUs up …"}
        </p>
      )}
      {lost.slice(0, 2).map((l, i) => (
        <p key={i} class="bad">
          {count(l.count)} {l.what}
        </p>
      ))}
      {!here && overlay && (
        <p class="dim">
          <span class="over" /> CPU use of {overlay}
        </p>
      )}
    </div>
  );
}

function patch(series: string, chosen: string | null) {
  const { key, pattern } = look(series, chosen);
  return { color: key, pattern };
}

function overlayAt(answer: Answer<UseAnswer>, time: number): number | null {
  const { window, px } = answer.json;
  if (!answer.has("overlay")) return null;
  return answer.f32("overlay")[Math.floor(((time - window[0]) / (window[1] - window[0])) * px)] ?? null;
}

/** The whole trace in a strip, with the window on it: drag to move. */
function Overview() {
  const s = use((s) => ({ window: s.window, summary: s.summary, finding: s.finding, explain: s.explain, trace: s.trace }));
  const [ref, box] = useBox<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemed();
  const all = whole();
  const request: Request | null =
    box.width > 0 && s.summary ? { ask: "use", window: all, px: box.width } : null;
  const asked = useAsk<UseAnswer>(request, `overview${s.explain ? "" : " first"}`);
  const window = current();
  useEffect(() => {
    const ctx = canvas.current && box.width > 0 ? begin(canvas.current, box) : null;
    if (!ctx) return;
    if (asked.answer) drawStack(ctx, asked.answer, all, { x: 0, y: 0, width: box.width, height: box.height }, s.finding);
    drawWindows(ctx, box.width, box.height, all, s.finding);
    if (!s.window) return;
    const theme = currentTheme();
    const [a, b] = [toX(all, box.width, window[0]), Math.max(toX(all, box.width, window[1]), toX(all, box.width, window[0]) + 2)];
    ctx.fillStyle = theme.bg;
    ctx.globalAlpha = 0.68;
    ctx.fillRect(0, 0, a, box.height);
    ctx.fillRect(b, 0, box.width - b, box.height);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = theme.accent;
    ctx.lineWidth = 2;
    ctx.strokeRect(a + 1, 1, Math.max(1, b - a - 2), box.height - 2);
  }, [asked.answer, box, window[0], window[1], s.finding, theme]);
  const move = (e: PointerEvent) => {
    if (!(e.buttons & 1) || !ref.current) return;
    const t = toTime(all, box.width, e.clientX - ref.current.getBoundingClientRect().left);
    const half = (get().window ? window[1] - window[0] : (all[1] - all[0]) / 4) / 2;
    zoomTo([t - half, t + half], true);
  };
  return (
    <div
      class="overview"
      ref={ref}
      title="The whole recording; drag to move the window"
      onPointerDown={(e) => {
        (e.currentTarget as HTMLElement).setPointerCapture(e.pointerId);
        move(e);
      }}
      onPointerMove={move}
    >
      <canvas ref={canvas} />
    </div>
  );
}

/** Where the chosen finding's windows are. */
function drawWindows(ctx: CanvasRenderingContext2D, width: number, height: number, all: Window, finding: string | null): void {
  const f = findingOf(get(), finding);
  if (!f) return;
  ctx.fillStyle = currentTheme().text;
  for (const [from, to] of f.windows) {
    const x = toX(all, width, from * 1e9);
    ctx.fillRect(x, height - 3, Math.max(2, toX(all, width, to * 1e9) - x), 3);
  }
}
