/** What held you up: the accounting, the causes as cards, the stalls, and how far to believe it. */

import type { Explain } from "../host/api";
import { count, many, percent, spanS } from "../lib/format";
import { chooseStall } from "../state/nav";
import { use } from "../state/store";
import { Accounting } from "./accounting";
import { FindingCard } from "./finding";
import { Caveats, Unsure } from "./health";
import { NoSpans, Spans } from "./spans";

export function Sidebar() {
  const { explain, error, stallAt } = use((s) => ({
    explain: s.explain,
    error: s.explainError,
    stallAt: s.finding === null ? s.at : null,
  }));
  return (
    <aside class="sidebar" aria-label="What held you up">
      <h1>What held you up</h1>
      {error && <p class="note bad">{error}</p>}
      {!explain && !error && <p class="note">Following every chain of waits to its end …</p>}
      {explain && (
        <>
          <Accounting explain={explain} />
          <Caveats explain={explain} />
          <Spans />
          <Findings explain={explain} />
          {explain.stalls.length > 0 && <Stalls explain={explain} at={stallAt} />}
          <NoSpans />
          <Unsure explain={explain} />
        </>
      )}
    </aside>
  );
}

/** Nobody was held up there: said, and not counted among the causes. */
const IDLE = "idle-by-design";

function Findings({ explain }: { explain: Explain }) {
  const { findings, smaller } = explain;
  const chosen = use((s) => s.finding);
  const cards = findings.map((f, i) => ({ f, card: <FindingCard key={f.id} finding={f} index={i} /> }));
  const causes = cards.filter(({ f }) => f.kind !== IDLE);
  const idle = cards.filter(({ f }) => f.kind === IDLE);
  // What it waited for matters most then: the first of these places is no footnote.
  const first = explain.mostly_idle ? idle.shift() : undefined;
  return (
    <section class="findings" aria-label="Causes">
      <h2>
        Causes <span class="dim">by CPU seconds lost</span>
      </h2>
      {first && <p class="note">Mostly there was nothing to do:</p>}
      {first?.card}
      {causes.length === 0 && (
        <p class="note">
          {explain.caveats.length > 0 ? "Who held whom up cannot be told from this recording." : `Nothing held the program up. ${nothingFound(explain)}`}
        </p>
      )}
      {causes.map(({ card }) => card)}
      {smaller.causes > 0 && (
        <p class="note">
          {many(smaller.causes, "smaller cause")} together: {spanS(smaller.blame_cpu_s)} of CPU time.
        </p>
      )}
      {idle.length > 0 && (
        <details class="idle" open={idle.some(({ f }) => f.id === chosen)}>
          <summary>{many(idle.length, "place")} of waiting for work that nobody sent</summary>
          {idle.map(({ card }) => card)}
        </details>
      )}
    </section>
  );
}

function nothingFound(explain: Explain): string {
  const hot = explain.hot[0];
  return hot?.function ? `It ran mostly ${hot.function} (${percent(hot.share)}): the flame graph on-CPU shows where.` : "";
}

function Stalls({ explain, at }: { explain: Explain; at: number | null }) {
  return (
    <section aria-label="Stalls">
      <h2>
        Stalls <span class="dim">standing still unusually long</span>
      </h2>
      {explain.stalls.map((s, i) => {
        const w = s.windows[0];
        const on = at !== null && w !== undefined && at >= w[0] * 1e9 && at <= w[1] * 1e9;
        return (
          <button key={i} class={on ? "stall on" : "stall"} aria-pressed={on} onClick={() => chooseStall(s)}>
            <span class="title">{s.title}</span>
            <span class="figures">
              <b>{spanS(s.longest_s)}</b>
              {s.count > 1 && <> longest of {count(s.count)}</>}
              {s.waiters > 0 && <> · {many(s.waiters, "thread")} waited</>}
            </span>
          </button>
        );
      })}
    </section>
  );
}
