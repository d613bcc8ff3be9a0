/** Units of work by name: how long they took, the slowest first, and what the slow ones have that the others have not. */

import { useState } from "preact/hooks";
import type { SlowAnswer, SlowestAnswer, SpanShown } from "../host/api";
import { count, many, span as long, spanS } from "../lib/format";
import { useAsk } from "../state/ask";
import { chooseSpan, openTab } from "../state/nav";
import { set, use } from "../state/store";
import { fromPreset } from "../table/spec";
import { Confidence } from "./finding";
import { Name } from "./name";

/** Names that are shown at once; all of them are in the tables. */
const MOST_NAMES = 6;
/** Of each name. */
const SLOWEST = 8;

export function Spans() {
  const { spans, trace } = use((s) => ({ spans: s.summary?.spans ?? 0, trace: s.trace }));
  return spans > 0 ? <Some key={trace} /> : null;
}

function Some() {
  const told = useAsk<SlowestAnswer>({ ask: "slowest", top: SLOWEST }, "slowest");
  const presets = use((s) => s.summary?.presets ?? []);
  const [open, setOpen] = useState<string | null>(null);
  const answer = told.answer?.json;
  const further = answer ? answer.names.length - Math.min(answer.names.length, MOST_NAMES) + answer.further : 0;
  const all = presets.find((p) => p.name === "spans-by-name");
  return (
    <section class="spans-by-name" aria-label="Spans">
      <h2>
        Spans <span class="dim">requests and other units of work</span>
      </h2>
      {told.error && <p class="note bad">{told.error}</p>}
      {answer?.names.slice(0, MOST_NAMES).map((n) => (
        <OfName key={n.name} of={n} open={open === n.name} toggle={() => setOpen(open === n.name ? null : n.name)} />
      ))}
      {answer && answer.left_out > 0 && <p class="note">{many(answer.left_out, "shorter span")} of so many are not drawn.</p>}
      {further > 0 && all && (
        <button
          class="link"
          onClick={() => {
            set({ table: fromPreset(all), expanded: [], tableRow: null });
            openTab("table");
          }}
        >
          {many(further, "further name")}, in the tables
        </button>
      )}
    </section>
  );
}

function OfName({ of: n, open, toggle }: { of: SlowestAnswer["names"][number]; open: boolean; toggle: () => void }) {
  // What was found out once stays, also while it is folded.
  const [asked, setAsked] = useState(false);
  return (
    <article class={open ? "card on" : "card"} data-span-name>
      <button
        class="head plain"
        aria-expanded={open}
        onClick={() => {
          setAsked(true);
          toggle();
        }}
      >
        <span class="title">
          <Name text={n.name} />
        </span>
        <span class="figures">
          <b>longest {n.count > 0 ? long(n.max) : "–"}</b>
          <span class="dim">99 % ≤ {long(n.p99)}</span>
          <span class="dim">half ≤ {long(n.p50)}</span>
          <span class="dim">of {count(n.count)}</span>
        </span>
      </button>
      {asked && (
        <div class="details" hidden={!open}>
          {n.count > 0 ? <Why name={n.name} /> : <p class="note">None was seen from its begin to its end.</p>}
          {n.open > 0 && n.count > 0 && <p class="note">{count(n.open)} more were not seen from begin to end.</p>}
          <Slowest of={n.slowest} />
        </div>
      )}
    </article>
  );
}

function Why({ name }: { name: string }) {
  const told = useAsk<SlowAnswer>({ ask: "slow", name }, `slow ${name}`);
  if (told.error) return <p class="note">{told.error}</p>;
  if (!told.answer) return <p class="note">Following what the slow ones waited for …</p>;
  const { headline, doubt, confidence, causes } = told.answer.json;
  const first = causes[0];
  const shown = causes.filter((c) => first && Math.max(c.slow_s, c.typical_s) >= first.slow_s / 100);
  return (
    <>
      <p class="headline">{headline.charAt(0).toUpperCase() + headline.slice(1)}.</p>
      <p class="summary">
        <Confidence level={confidence} />
        {doubt && <span class="dim">: {doubt}</span>}
      </p>
      <table class="changes" aria-label="What the time of each was">
        <thead>
          <tr>
            <th class="num">slow</th>
            <th class="num">others</th>
            <th>what the time of each was</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((c, i) => (
            <tr key={i}>
              <td class="num word">{spanS(c.slow_s)}</td>
              <td class="num word">{spanS(c.typical_s)}</td>
              <td>{c.said}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function Slowest({ of }: { of: SpanShown[] }) {
  const chosen = use((s) => s.span);
  if (of.length === 0) return null;
  return (
    <>
      <h3>The slowest</h3>
      <ol class="slowest">
        {of.map((s) => (
          <li key={s.id}>
            <button
              class={chosen === s.id ? "on" : ""}
              aria-pressed={chosen === s.id}
              title={`${s.name} ${s.argument}\n${s.thread}`}
              onClick={() => {
                openTab("lanes");
                chooseSpan(s, { zoom: true, reveal: true });
              }}
            >
              <b>{long(s.end - s.start)}</b>
              <span class="what">{s.argument || s.thread}</span>
              <span class="dim">at {(s.start / 1e9).toFixed(3)} s</span>
            </button>
          </li>
        ))}
      </ol>
    </>
  );
}

/** How to have some, where there are none. */
export function NoSpans() {
  const none = use((s) => s.summary?.spans === 0);
  if (!none) return null;
  return (
    <details class="idle">
      <summary>No spans: was a request slow?</summary>
      <p class="note">
        A span is a unit of work: a request, a query, a job. With spans in a recording, the slow ones are listed here with what they waited
        for. Calls of a function, requests on sockets, built-in probes, or what OpenTelemetry exported:
      </p>
      <pre class="note">{HOW}</pre>
    </details>
  );
}

const HOW = `holdup record -o t.holdup \\
  --span 'u:./server:handle_request(int,str)' \\
  -- ./server
holdup record -a -o t.holdup --span net
holdup explain t.holdup \\
  --spans otel.json --keep with.holdup`;
