/** What the recording cannot tell, and how far it can be believed: what is missing altogether stands above the causes. */

import type { Explain } from "../host/api";
import { count, many, percent } from "../lib/format";
import { use } from "../state/store";

/** Of one, and of several. */
const WORDS: Record<string, [string, string]> = {
  lost_events: ["event lost", "events lost"],
  lost_stacks: ["stack lost", "stacks lost"],
  lost_mappings: ["mapping of code lost", "mappings of code lost"],
  unknown_wakers: ["wait whose waker is unknown", "waits whose waker is unknown"],
  cycles: ["circle of waiting threads", "circles of waiting threads"],
  unmatched: ["event that contradicts earlier ones", "events that contradict earlier ones"],
  inferred: ["switch inferred", "switches inferred"],
  impossible: ["impossible figure cut (a mistake in holdup)", "impossible figures cut (a mistake in holdup)"],
};

export function Caveats({ explain }: { explain: Explain }) {
  if (explain.caveats.length === 0) return null;
  return (
    <section class="health" aria-label="What is missing">
      {explain.caveats.map((c, i) => (
        <div key={i} class="note warn">
          {c.what}
          {c.record.map((line) => (
            <pre key={line}>{line}</pre>
          ))}
        </div>
      ))}
    </section>
  );
}

export function Unsure({ explain }: { explain: Explain }) {
  const summary = use((s) => s.summary);
  const unsure = Object.entries(WORDS).filter(([key]) => (explain.health[key] ?? 0) > 0);
  const unknown = explain.health["share_unknown"] ?? 0;
  return (
    <section class="health" aria-label="How sure">
      <h2>How sure</h2>
      {unsure.length === 0 && unknown === 0 && explain.caveats.length === 0 && (
        <p class="note">Nothing was lost, and every wait has its waker.</p>
      )}
      <ul class="evidence">
        {unsure.map(([key, words]) => (
          <li key={key}>{many(explain.health[key] ?? 0, ...words)}</li>
        ))}
        {unknown > 0 && <li>use unknown of {percent(unknown)} of the CPU time</li>}
        {(summary?.losses ?? []).slice(0, 6).map((l, i) => (
          <li key={`l${i}`} class="doubt">
            {count(l.count)} {l.what}
            {l.cpu !== null && ` on CPU ${l.cpu}`}
          </li>
        ))}
      </ul>
    </section>
  );
}
