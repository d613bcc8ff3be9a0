/** Below the views: what is at the cursor, and the chain from a wait to the one who answers for it. */

import { useRef } from "preact/hooks";
import type { AtAnswer, ChainAnswer, ChainDocument } from "../host/api";
import { instant, many, percent, span, spanS } from "../lib/format";
import { current, goTo, goToHop, openCode } from "../state/nav";
import { get, set, use } from "../state/store";
import { HotInstruction } from "./finding";
import { Name } from "./name";
import { OfItsName, SpanPanel } from "./span";
import { Stack } from "./stack";

export function Drawer() {
  const s = use((s) => ({ chain: s.chain, here: s.here, chainOf: s.chainOf, point: s.point, hop: s.hop, height: s.drawer, span: s.span, told: s.spanTold }));
  if (!s.chainOf && !s.point && s.span === null) return null;
  const { told } = s;
  return (
    <section class="drawer" style={{ height: `${s.height}px` }} aria-label="Selection">
      <Handle />
      <button class="close" title="Close (Esc)" aria-label="Close" onClick={close}>
        ✕
      </button>
      <div class="columns">
        <div class="chain">
          {s.chain.loading && <p class="note">Following the chain …</p>}
          {s.chain.error && <p class="note">{s.chain.error}</p>}
          {told.loading && <p class="note">Following what it waited for …</p>}
          {told.error && <p class="note">{told.error}</p>}
          {told.answer && <SpanPanel span={told.answer} />}
          {s.chain.answer && <Chain answer={s.chain.answer} hop={s.hop} />}
        </div>
        <div class="here">
          {s.here.loading && <p class="note">Looking …</p>}
          {s.here.error && <p class="note">{s.here.error}</p>}
          {s.here.answer && <Here at={s.here.answer} />}
          {told.answer && !s.here.answer && <OfItsName span={told.answer} />}
          {!s.point && s.chain.answer && <First chain={s.chain.answer.chain} />}
        </div>
      </div>
    </section>
  );
}

export function close(): void {
  set({ point: null, chainOf: null, span: null, at: null });
}

function Handle() {
  const from = useRef<{ y: number; height: number } | null>(null);
  return (
    <div
      class="handle"
      title="Drag to make larger or smaller"
      onPointerDown={(e) => {
        from.current = { y: e.clientY, height: get().drawer };
        e.currentTarget.setPointerCapture(e.pointerId);
      }}
      onPointerMove={(e) => {
        if (!from.current) return;
        const most = globalThis.innerHeight - 330;
        set({ drawer: Math.max(90, Math.min(most, from.current.height + from.current.y - e.clientY)) });
      }}
      onPointerUp={() => (from.current = null)}
    />
  );
}

const BY: Record<string, string> = {
  start: "waits",
  waker: "woke it",
  owner: "owned the lock",
  before: "before that",
  creator: "created it",
};

function Chain({ answer, hop }: { answer: ChainAnswer; hop: number }) {
  const { chain } = answer;
  const all = chain.hops[0]?.wait ? chain.hops[0].wait.waited_s + chain.hops[0].wait.ready_s : 0;
  return (
    <>
      <p class="summary">
        <b>{endText(chain)}</b>
        {chain.also_waiting > 0 && <span class="dim"> {many(chain.also_waiting, "other thread")} waited then, too.</span>}
        {chain.note && <span class="dim"> {chain.note}</span>}
      </p>
      <table class="hops" aria-label="The chain, hop by hop">
        <thead>
          <tr>
            <th>#</th>
            <th>Thread</th>
            <th />
            <th>Did until it let the one before go on</th>
            <th class="num">Part of the wait</th>
          </tr>
        </thead>
        <tbody>
          {chain.hops.map((h, i) => (
            <tr key={i} class={`${i === hop ? "on" : ""} ${i === chain.end.main_hop ? "main" : ""}`} onClick={() => goToHop(i)}>
              <td class="num">{i + 1}</td>
              <td>
                <button class="link" onClick={() => goToHop(i)} data-hop={i}>
                  {h.who.thread || h.who.process}
                </button>
                {h.who.process !== h.who.thread && <span class="dim"> {h.who.process}</span>}
              </td>
              <td class="dim">{BY[h.by] ?? h.by}</td>
              <td>
                <Did hop={h} first={i === 0} />
              </td>
              <td class="num">
                <Part part={h.part_s + h.alone_s} all={all} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

/** What somebody did at a chain's end who did not run, in the terminal's words. */
const ENDS: Record<string, string> = {
  runnable: "could run, and had no CPU",
  disk: "waited for a disk",
  timer: "waited for a timer",
  network: "waited for the network",
  input: "waited for input from outside",
  interrupt: "waited for an interrupt",
  nobody: "waited, and nobody ended it",
  circle: "is in a circle of threads that wait for each other",
  lost: "is not known to have done anything",
  unknown: "is not known to have done anything",
  cut: "is not followed so far back",
};

/** What the whole first wait was, in one line: the largest share, and where the chain ends. */
function endText(chain: ChainDocument): string {
  const most = chain.shares[0];
  if (!most || most.share < 0.5) return chain.end.text;
  const who = most.who.thread || most.who.process;
  if (!who) return chain.end.text;
  const did = most.what === "running" ? `ran ${most.function || "code without a name"}` : (ENDS[most.what] ?? most.what);
  return `${percent(most.share)} of this wait: ${who} ${did}.`;
}

function Did({ hop, first }: { hop: ChainDocument["hops"][number]; first: boolean }) {
  const d = hop.did;
  const parts: preact.ComponentChild[] = [];
  if (d.ran_s > 0) parts.push(<span>ran {spanS(d.ran_s)}</span>);
  if (d.ready_s > 0.000001 && !first) {
    const behind = d.behind[0];
    parts.push(
      <span>
        ready {spanS(d.ready_s)}
        {behind && <span class="dim"> behind {behind.who.thread || behind.who.process}</span>}
      </span>,
    );
  }
  if (d.waited_s > 0) parts.push(<span>waited {spanS(d.waited_s)}</span>);
  if (first && hop.wait) {
    parts.length = 0;
    parts.push(
      <span>
        waited {spanS(hop.wait.waited_s)} for {hop.wait.kind}
        {hop.wait.function && (
          <>
            {" in "}
            <Fn name={hop.wait.function} />
          </>
        )}
      </span>,
    );
  }
  return (
    <>
      {parts.map((p, i) => (
        <span key={i}>
          {i > 0 && ", "}
          {p}
        </span>
      ))}
      {d.function && !first && (
        <>
          {" in "}
          <Fn name={d.function} /> <span class="dim">{d.source}</span>
          <HotInstruction hot={d.instruction} />
        </>
      )}
    </>
  );
}

export function Fn({ name, module = "" }: { name: string; module?: string }) {
  return (
    <button
      class="link code"
      title="Show its instructions"
      onClick={(e) => {
        e.stopPropagation();
        openCode(name, module);
      }}
    >
      <Name text={name} />
    </button>
  );
}

function Part({ part, all }: { part: number; all: number }) {
  const share = all > 0 ? Math.min(1, part / all) : 0;
  return (
    <span class="part" title={`${percent(share)} of the wait`}>
      <span class="fill" style={{ width: `${(share * 100).toFixed(1)}%` }} />
      <span class="figure">{part > 0 ? spanS(part) : "–"}</span>
    </span>
  );
}

function Here({ at }: { at: AtAnswer }) {
  const [from, to] = current();
  const w = at.wait;
  return (
    <>
      <p class="summary">
        <b>{at.thread}</b> {at.state}
      </p>
      <dl>
        <dt>From</dt>
        <dd>
          {instant(at.from, to - from)} for {span(at.to - at.from)}
          {at.cpu !== null && ` on CPU ${at.cpu}`}
        </dd>
        {at.function && (
          <>
            <dt>Mostly in</dt>
            <dd>
              <Fn name={at.function} />
            </dd>
          </>
        )}
        {w && (
          <>
            <dt>For</dt>
            <dd>
              {w.kind}
              {w.function && (
                <>
                  {" in "}
                  <Fn name={w.function} />
                </>
              )}
              {w.place && <span class="dim"> {w.place}</span>}
            </dd>
            {w.lock && (
              <>
                <dt>Lock</dt>
                <dd>
                  {w.lock.name || w.lock.kind} <span class="dim code">{w.lock.address}</span>
                </dd>
              </>
            )}
            {(w.waker || w.waker_context) && (
              <>
                <dt>Ended by</dt>
                <dd>
                  {w.waker_row !== null ? (
                    <button class="link" onClick={() => goTo(w.waker_row, (w.woken ?? at.to) - 1, { tab: true })}>
                      {w.waker}
                    </button>
                  ) : (
                    w.waker || w.waker_context
                  )}
                </dd>
              </>
            )}
            {w.terminal && (
              <>
                <dt>End of chain</dt>
                <dd>{w.terminal}</dd>
              </>
            )}
          </>
        )}
      </dl>
      {w && w.stack.length > 0 && <Stack title="Where it waited" frames={w.stack} />}
      {w && w.waker_stack.length > 0 && <Stack title="Where it was woken" frames={w.waker_stack} />}
    </>
  );
}

/** The wait that the chain begins with, where no place on a lane was chosen. */
function First({ chain }: { chain: ChainDocument }) {
  const w = chain.hops[0]?.wait;
  if (!w) return null;
  return (
    <>
      <p class="summary">
        <b>{chain.hops[0]?.who.thread}</b> waited {spanS(w.waited_s)}
      </p>
      {w.stack.length > 0 && <Stack title="Where it waited" frames={w.stack} open />}
      {w.waker_stack.length > 0 && <Stack title="Where it was woken" frames={w.waker_stack} />}
    </>
  );
}
