/** Two recordings side by side, on one axis of time, and what changed between them: causes first. */

import { useEffect, useRef } from "preact/hooks";
import type { DiffDocument, Explain, Request, Summary, UseAnswer } from "../host/api";
import { begin, useBox, useThemed } from "../lib/canvas";
import { many, percent, span, spanS } from "../lib/format";
import { currentTheme } from "../lib/palette";
import { useAsk } from "../state/ask";
import { current } from "../state/nav";
import { set, use } from "../state/store";
import { timeTicks, toX } from "../graph/axis";
import { useGestures } from "../graph/gestures";
import { drawStack } from "../graph/stack";
import { Fn } from "./drawer";

export function Compare() {
  const s = use((s) => ({ traces: s.traces, trace: s.trace, against: s.against }));
  const others = s.traces.filter((t) => t.id !== s.trace && t.kind === "trace");
  const against = others.find((t) => t.id === s.against) ?? others[0];
  useEffect(() => {
    if (against && s.against !== against.id) set({ against: against.id });
  }, [against?.id]);
  if (!against) {
    return (
      <p class="note">
        Only one recording is open. Open two to compare them: <code>holdup view BEFORE AFTER</code>
      </p>
    );
  }
  const name = s.traces.find((t) => t.id === s.trace)?.name ?? "";
  return (
    <div class="view compare">
      <div class="tools">
        <span>
          <span class="dim">Above</span> <b>{name}</b>
        </span>
        <label>
          <span class="dim">below</span>{" "}
          <select aria-label="Compare with" value={against.id} onChange={(e) => set({ against: Number(e.currentTarget.value) })}>
            {others.map((t) => (
              <option key={t.id} value={t.id}>
                {t.name}
              </option>
            ))}
          </select>
        </label>
        <span class="dim">Both from their beginnings, on the same axis; changes are from {name} to {against.name}.</span>
      </div>
      <Other trace={against.id} />
      <Changes before={s.trace} after={against.id} />
    </div>
  );
}

/** The other recording's graph, and its causes. */
function Other({ trace }: { trace: number }) {
  const s = use((s) => ({ window: s.window }));
  const summary = useAsk<Summary>({ ask: "summary" }, "other summary", trace);
  const explain = useAsk<Explain>({ ask: "explain" }, "other explain", trace);
  const [ref, box] = useBox<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemed();
  const window = current();
  const end = summary.answer?.json.duration_ns ?? 0;
  const inside: [number, number] = [Math.min(window[0], end), Math.min(window[1], end)];
  const share = (inside[1] - inside[0]) / (window[1] - window[0]);
  const px = Math.max(1, Math.round(box.width * share));
  const request: Request | null = box.width > 0 && inside[1] > inside[0] ? { ask: "use", window: inside, px } : null;
  const { answer, error } = useAsk<UseAnswer>(request, `other use${explain.answer ? "" : " first"}`, trace);
  const [drag, handlers] = useGestures({ width: Math.max(1, box.width), window });
  useEffect(() => {
    const ctx = canvas.current && box.width > 0 ? begin(canvas.current, box) : null;
    if (!ctx) return;
    const theme = currentTheme();
    const plot = box.height - 18;
    if (answer) drawStack(ctx, answer, window, { x: 0, y: 2, width: box.width, height: plot - 2 }, null);
    ctx.textAlign = "center";
    for (const { at, text } of timeTicks(window, box.width)) {
      const x = toX(window, box.width, at);
      ctx.fillStyle = theme.grid;
      ctx.fillRect(x, 2, 1, plot - 2);
      ctx.fillStyle = theme.dim;
      const half = ctx.measureText(text).width / 2 + 2;
      if (x - half > 0 && x + half < box.width) ctx.fillText(text, x, plot + 10);
    }
    const stop = toX(window, box.width, end);
    if (end > 0 && stop < box.width) {
      ctx.fillStyle = theme.bg;
      ctx.fillRect(stop, 0, box.width - stop, plot);
      ctx.fillStyle = theme.dim;
      ctx.textAlign = "left";
      if (box.width - stop > 90) ctx.fillText("ends here", stop + 6, 12);
    }
    // The axis is that of the recording above.
    if (end > window[1] && s.window === null) {
      const text = `goes on for ${span(end - window[1])} ▸`;
      ctx.textAlign = "right";
      ctx.fillStyle = theme.bg;
      const wide = ctx.measureText(text).width + 8;
      ctx.fillRect(box.width - wide - 2, 4, wide, 16);
      ctx.fillStyle = theme.text;
      ctx.fillText(text, box.width - 6, 12);
    }
    if (drag) {
      ctx.fillStyle = theme.accent;
      ctx.globalAlpha = 0.2;
      ctx.fillRect(Math.min(...drag), 0, Math.abs(drag[1] - drag[0]), plot);
      ctx.globalAlpha = 1;
    }
  }, [answer, box, window[0], window[1], drag, theme, s.window, end]);
  return (
    <>
      {(error ?? summary.error) && <p class="note bad">{error ?? summary.error}</p>}
      <div class="other">
        <div class="readout">
          {summary.answer && (
            <p>
              <b>{summary.answer.json.name.replace(/^.*\//, "")}</b>
              <span class="dim">
                {" "}
                {span(end)}, {many(summary.answer.json.cpus, "CPU")}
              </span>
            </p>
          )}
          {(explain.answer?.json.findings ?? []).slice(0, 2).map((f) => (
            <p key={f.id} class="cause" title={f.title}>
              <b>{f.id}</b> {f.title} <span class="dim">({spanS(f.blame_cpu_s)})</span>
            </p>
          ))}
          {explain.answer?.json.findings.length === 0 && <p class="dim">Nothing held it up.</p>}
        </div>
        <div class="plot" ref={ref} {...handlers}>
          <canvas ref={canvas} />
        </div>
      </div>
    </>
  );
}

const ROLE = { cause: "cause", symptom: "symptom", unclear: "unclear" } as const;

function Changes({ before, after }: { before: number; after: number }) {
  const { answer, error, loading } = useAsk<DiffDocument>({ ask: "diff", before: [before], after: [after] }, "diff");
  if (error) return <p class="note bad">{error}</p>;
  if (!answer) return <p class="note">{loading ? "Comparing …" : ""}</p>;
  const d = answer.json;
  return (
    <div class="scroll" tabIndex={0} aria-label="What changed">
      <p class="summary">
        <b>{d.slower >= 1 ? `${d.slower.toFixed(2)}× as long` : `${(1 / d.slower).toFixed(2)}× as fast`}</b>
        {": "}
        {spanS(d.before.elapsed_s)} → {spanS(d.after.elapsed_s)}; CPU time {spanS(d.before.cpu_s)} → {spanS(d.after.cpu_s)} (
        {d.cpu >= 1 ? "+" : "−"}
        {percent(Math.abs(d.cpu - 1))}); held up {spanS(d.before.held_up_s)} → {spanS(d.after.held_up_s)}.
        {d.within_noise > 0 && <span class="dim"> {d.within_noise} smaller differences are within the noise.</span>}
      </p>
      {d.notes.map((n) => (
        <p key={n} class="note">
          {n}
        </p>
      ))}
      {d.changes.length === 0 && <p class="note">Nothing changed by more than noise.</p>}
      <table class="changes" hidden={d.changes.length === 0}>
        <thead>
          <tr>
            <th>Role</th>
            <th>What</th>
            <th>Name</th>
            <th class="num">Change, CPU time</th>
            <th class="num">CPU</th>
            <th class="num">Waits</th>
            <th>Because</th>
          </tr>
        </thead>
        <tbody>
          {d.changes.map((c, i) => (
            <tr key={i} class={c.role}>
              <td class="word">
                <span class={`role ${c.role}`}>{ROLE[c.role]}</span>
              </td>
              <td class="word dim">{c.what}</td>
              <td>
                {c.what === "function" ? <Fn name={c.name} /> : c.name}
                {c.process && <span class="dim"> {c.process}</span>}
              </td>
              <td class="num">
                {c.delta_s > 0 ? "+" : "−"}
                {spanS(Math.abs(c.delta_s))}
              </td>
              <td class="num dim">
                {spanS(c.cpu_s[0])} → {spanS(c.cpu_s[1])}
              </td>
              <td class="num dim">
                {spanS(c.wait_s[0])} → {spanS(c.wait_s[1])}
              </td>
              <td class="dim">
                {c.because}
                {c.significance !== null && ` (p = ${c.significance.toPrecision(2)})`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
