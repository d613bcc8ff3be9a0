/** One cause: its headline always, all that is known of it once it is chosen. */

import { useEffect, useRef } from "preact/hooks";
import type { Finding, Instruction } from "../host/api";
import { many, percent, spanS } from "../lib/format";
import { heldLook } from "../lib/palette";
import { chooseFinding, openCode, openTab } from "../state/nav";
import { set, use } from "../state/store";
import { Patch } from "./patch";
import { Name } from "./name";
import { Stack } from "./stack";

export function FindingCard({ finding: f, index }: { finding: Finding; index: number }) {
  const chosen = use((s) => s.finding === f.id);
  const ref = useRef<HTMLElement>(null);
  useEffect(() => {
    if (chosen) ref.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const look = heldLook(index, chosen ? true : null);
  return (
    <article class={chosen ? "card on" : "card"} ref={ref} data-finding={f.id}>
      <button class="head" aria-expanded={chosen} onClick={() => chooseFinding(chosen ? null : f.id)}>
        <span class="mark">
          <Patch color={look.key} pattern={look.pattern} />
          <b>{f.id}</b>
        </span>
        <span class="title">{f.title}</span>
        <span class="figures">
          <b>{spanS(f.blame_cpu_s)}</b>
          <span class="dim">{f.kind}</span>
          <Confidence level={f.confidence} />
          {f.gain_at_most !== null && (
            <span class="dim" title="An upper bound: without it the run could not have been shorter than this allows">
              ≤ {f.gain_at_most.toFixed(2)}× faster
            </span>
          )}
        </span>
      </button>
      {chosen && <Details f={f} />}
    </article>
  );
}

const LEVEL = { high: "●●●", medium: "●●○", low: "●○○" } as const;

export function Confidence({ level }: { level: Finding["confidence"] }) {
  return (
    <span class="confidence" title={`Confidence: ${level}`}>
      <span aria-hidden="true">{LEVEL[level]}</span> {level}
    </span>
  );
}

function Details({ f }: { f: Finding }) {
  const c = f.culprit;
  const hot = c.instruction;
  return (
    <div class="details">
      <dl>
        <dt>Culprit</dt>
        <dd>
          {c.thread || c.process || "–"}
          {c.process && c.process !== c.thread && <span class="dim"> of {c.process}</span>}
          {c.tid > 0 && <span class="dim"> (tid {c.tid})</span>}
          {c.threads > 1 && <span class="dim">, with {many(c.threads - 1, "thread")} like it</span>}
        </dd>
        {c.works_on && (
          <>
            <dt>worked on</dt>
            <dd>
              {c.works_on.slice(0, 3).map((on) => `${on.what} ${percent(on.share)}`).join(", ")}
              {c.works_on.length > 3 && <span class="dim"> and {c.works_on.length - 3} others</span>}
            </dd>
          </>
        )}
        {c.function && (
          <>
            <dt>ran</dt>
            <dd>
              <button class="link code" title="Show its instructions" onClick={() => openCode(c.function, c.module)}>
                <Name text={c.function} />
              </button>
              {c.source && <span class="dim"> {c.source}</span>}
              {c.called_by && <div class="dim">
                  called by <Name text={c.called_by} />{c.called_at && `, ${c.called_at}`}
                </div>}
              <HotInstruction hot={hot} />
            </dd>
          </>
        )}
        {f.lock && (
          <>
            <dt>Lock</dt>
            <dd>
              {f.lock.name || f.lock.kind} <span class="dim code">{f.lock.name ? f.lock.kind : f.lock.address}</span>
            </dd>
          </>
        )}
        {f.waiters.threads > 0 && (
          <>
            <dt>Held up</dt>
            <dd>
              {many(f.waiters.threads, "thread")}
              {f.waiters.names.length > 0 && <span class="dim"> {f.waiters.names.join(", ")}</span>}
              <div class="dim">
                {many(f.waiters.waits, "wait")}: {spanS(f.waiters.total_s)} in all, {spanS(f.waiters.mean_s)} on average,{" "}
                {spanS(f.waiters.max_s)} at most
              </div>
              {f.waiters.function && (
                <div class="dim">
                  in <Name text={f.waiters.function} /> {f.waiters.source}
                </div>
              )}
            </dd>
          </>
        )}
        {f.advice && (
          <>
            <dt>Try</dt>
            <dd>
              <Name text={f.advice} />
            </dd>
          </>
        )}
      </dl>
      <ul class="evidence">
        {f.evidence.map((e) => (
          <li key={e}>{e}</li>
        ))}
        {f.doubts.map((d) => (
          <li key={d} class="doubt">
            {d}
          </li>
        ))}
      </ul>
      {f.wait_stack.length > 0 && <Stack title="Where they hung" frames={f.wait_stack} />}
      {f.release_stack.length > 0 && <Stack title="Where they were let go" frames={f.release_stack} />}
      <p class="actions">
        <button onClick={() => show("blame")}>Blame graph</button>
        <button onClick={() => show("cpu")}>Its CPU time</button>
        <button onClick={() => openTab("table")}>Its waits</button>
        {c.function && <button onClick={() => openCode(c.function, c.module)}>Code</button>}
      </p>
      <p class="dim small">
        {f.share_of_held_up >= 0.005 && `${percent(f.share_of_held_up)} of what is charged · `}lasted {spanS(f.lasted_s)} in {many(f.windows.length, "stretch", "stretches")}
      </p>
    </div>
  );
}

function show(of: "blame" | "cpu"): void {
  set({ tab: "flame", flame: { of, callers: false, leftHeavy: true, differential: false, search: "" } });
}

export function HotInstruction({ hot }: { hot: Instruction | null }) {
  if (!hot) return null;
  return (
    <div class="hot" title={`${percent(hot.share)} of its samples are at ${hot.address}`}>
      <span class="code">{hot.text || hot.address}</span> <b>{percent(hot.share)}</b>
    </div>
  );
}
