/** One span: what it was about, how long beside all of its name, and what its time was, piece by piece. */

import { useEffect, useRef } from "preact/hooks";
import type { SpanAnswer, SpanShown } from "../host/api";
import { begin, useBox, useThemed } from "../lib/canvas";
import { count, instant, percent, span as long, spanS } from "../lib/format";
import { fill, type Pattern, type Theme } from "../lib/palette";
import { current, goTo, openCode, zoomToSpan } from "../state/nav";
import { Name } from "./name";
import { Patch } from "./patch";

/** How what was done looks: as the same does in the lanes. */
const LOOKS: Readonly<Record<string, readonly [keyof Theme, Pattern]>> = {
  ran: ["busy", "solid"],
  "waited-for": ["held", "hatch"],
  behind: ["runnable", "vertical"],
  disk: ["disk", "horizontal"],
  timer: ["sleep", "dash"],
  outside: ["outside", "back"],
  interrupt: ["other", "dots"],
};
const lookOf = (what: string) => LOOKS[what] ?? (["lost", "cross"] as const);

/** `the 3rd longest of 640`, `slower than 97.5 % of 640`. */
export function placeOf(s: SpanShown): string {
  if (s.rank === 0) return ENDS[s.outcome] ?? "not seen from begin to end";
  if (s.count < 2) return "the only one of its name";
  const all = count(s.count);
  if (s.rank <= FIRST) return s.rank === 1 ? `the longest of ${all}` : `the ${nth(s.rank)} longest of ${all}`;
  // Rounded down: none is slower than all.
  return `slower than ${Math.floor((1 - s.rank / s.count) * 1000) / 10} % of ${all}`;
}

/** These are counted instead of measured in percent. */
const FIRST = 12;
const nth = (n: number) => (n === 2 ? "2nd" : n === 3 ? "3rd" : `${n}th`);

const ENDS: Readonly<Record<string, string>> = {
  moved: "ended on another thread",
  abandoned: "its end was not seen",
  open: "not over when the recording ended",
  begun: "begun before the recording",
};

export function SpanPanel({ span: s }: { span: SpanAnswer }) {
  const [from, to] = current();
  return (
    <>
      <p class="summary">
        <b>
          <Name text={s.name} /> took {long(s.end - s.start)}
        </b>{" "}
        <span class="dim">{placeOf(s)}</span>
      </p>
      {s.argument && <p class="summary code argument">{s.argument}</p>}
      <p class="summary dim">
        At {instant(s.start, to - from)} on{" "}
        <button class="link" title="Go to this thread" onClick={() => goTo(s.thread_row, s.start)}>
          {s.thread}
        </button>
        {s.ended_on && <>, ended on {s.ended_on}</>}
        {s.queued > 0 && <>; at first it lay {long(s.queued)} while its thread did other things</>}{" "}
        <button onClick={() => zoomToSpan(s)} title="The window becomes this span (Enter)">
          Show it
        </button>
      </p>
      {s.note && <p class="note">{s.note}</p>}
      {s.pieces.length > 0 && <Strip span={s} />}
      {s.pieces.length > 0 && <Pieces span={s} />}
    </>
  );
}

/** Its time from left to right. */
function Strip({ span: s }: { span: SpanAnswer }) {
  const [ref, box] = useBox<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemed();
  useEffect(() => {
    const ctx = canvas.current && box.width > 0 ? begin(canvas.current, box) : null;
    if (!ctx) return;
    const x = (seconds: number) => (seconds * 1e9 * box.width) / Math.max(1, s.end - s.start);
    for (const p of s.pieces) {
      ctx.fillStyle = fill(ctx, ...lookOf(p.what));
      ctx.fillRect(x(p.from_s), 0, Math.max(1, x(p.length_s)), box.height);
    }
  }, [s, box, theme]);
  return (
    <div class="pieces-strip" ref={ref} aria-hidden="true">
      <canvas ref={canvas} />
    </div>
  );
}

function Pieces({ span: s }: { span: SpanAnswer }) {
  const all = (s.end - s.start) / 1e9;
  return (
    <table class="hops pieces" aria-label="What its time was">
      <thead>
        <tr>
          <th class="num">After</th>
          <th />
          <th>What its time was</th>
          <th class="num">Part of it</th>
        </tr>
      </thead>
      <tbody>
        {s.pieces.map((p, i) => {
          const middle = s.start + (p.from_s + p.length_s / 2) * 1e9;
          const [key, pattern] = lookOf(p.what);
          return (
            <tr key={i} onClick={() => goTo(p.row ?? s.thread_row, middle)}>
              <td class="num">{spanS(p.from_s)}</td>
              <td>
                <Patch color={key} pattern={pattern} />
              </td>
              <td>
                <button class="link" title="Go there in the lanes" onClick={() => goTo(p.row ?? s.thread_row, middle)}>
                  {p.said}
                </button>
                {p.function && (
                  <button
                    class="small"
                    title={`Instructions of ${p.function}`}
                    onClick={(e) => {
                      e.stopPropagation();
                      openCode(p.function);
                    }}
                  >
                    code
                  </button>
                )}
              </td>
              <td class="num">
                <span class="part" title={`${percent(p.length_s / all)} of it`}>
                  <span class="fill" style={{ width: `${Math.min(100, (100 * p.length_s) / all).toFixed(1)}%` }} />
                  <span class="figure">{spanS(p.length_s)}</span>
                </span>
              </td>
            </tr>
          );
        })}
        {s.rest_s > 0 && (
          <tr>
            <td />
            <td />
            <td class="dim">shorter pieces</td>
            <td class="num">{spanS(s.rest_s)}</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

/** All of its name. */
export function OfItsName({ span: s }: { span: SpanAnswer }) {
  if (s.count === 0) return null;
  return (
    <>
      <p class="summary">
        All {count(s.count)} of <Name text={s.name} />
      </p>
      <dl>
        <dt>Half</dt>
        <dd>at most {long(s.p50)}</dd>
        <dt>99 %</dt>
        <dd>at most {long(s.p99)}</dd>
        <dt>Longest</dt>
        <dd>{long(s.max)}</dd>
      </dl>
    </>
  );
}
