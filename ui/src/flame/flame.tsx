/** Flame graphs, the root on top: on-CPU, off-CPU, wakers, blame from the waiter down to the culprit; differential. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { FlameAnswer, Request } from "../host/api";
import { begin, useBox, useThemed } from "../lib/canvas";
import { count, percent, span } from "../lib/format";
import { useAsk } from "../state/ask";
import { current, openCode } from "../state/nav";
import { get, set, use, type FlameKind, type FlameSpec } from "../state/store";
import { inWords } from "../table/table";
import { draw, HEIGHT } from "./draw";
import { childrenOf, layout, nameOf, NONE, pathTo, search, tree, type Tree } from "./tree";

const KINDS: readonly [FlameKind, string, string][] = [
  ["blame", "Blame", "Who held up whom: from the waiter down to the culprit, by CPU time that stood still"],
  ["cpu", "On CPU", "Where CPU time went, by samples"],
  ["off", "Off CPU", "Where threads waited, by time"],
  ["wakers", "Wakers", "Where the wakers were, by the waits that they ended"],
];

export function Flame() {
  const s = use((s) => ({
    spec: s.flame,
    window: s.window,
    selection: s.selection,
    against: s.against,
    traces: s.traces,
    trace: s.trace,
    ready: s.summary !== null,
  }));
  const { spec } = s;
  const change = (patch: Partial<FlameSpec>) => set({ flame: { ...get().flame, ...patch } });
  const differential = spec.differential && s.against !== null;
  const request: Request | null = s.ready
    ? {
        ask: "flame",
        of: spec.of,
        window: current(),
        ...(s.selection ? { filter: s.selection } : {}),
        callers: spec.callers,
        left_heavy: spec.leftHeavy,
        ...(differential && s.against !== null ? { against: s.against } : {}),
      }
    : null;
  const { answer, error, loading } = useAsk<FlameAnswer>(request, "flame");
  const t = useMemo(() => (answer ? tree(answer, spec.leftHeavy) : null), [answer, spec.leftHeavy]);
  const found = useMemo(() => (t ? search(t, spec.search) : null), [t, spec.search]);
  const others = s.traces.filter((o) => o.id !== s.trace && o.kind === "trace");

  return (
    <div class="view flame">
      <div class="tools">
        <span class="switch" role="group" aria-label="What the graph shows">
          {KINDS.map(([of, name, doc]) => (
            <button key={of} aria-pressed={spec.of === of} title={doc} onClick={() => change({ of })}>
              {name}
            </button>
          ))}
        </span>
        <label title="From the innermost function to its callers">
          <input type="checkbox" checked={spec.callers} onChange={(e) => change({ callers: e.currentTarget.checked })} /> callers
        </label>
        <label title="The widest first, instead of by name">
          <input type="checkbox" checked={spec.leftHeavy} onChange={(e) => change({ leftHeavy: e.currentTarget.checked })} /> widest
          first
        </label>
        {others.length > 0 && (
          <label title="Coloured by the change against another trace">
            <input
              type="checkbox"
              checked={spec.differential}
              onChange={(e) => {
                if (e.currentTarget.checked && get().against === null) set({ against: others[0]?.id ?? null });
                change({ differential: e.currentTarget.checked });
              }}
            />{" "}
            against {others.find((o) => o.id === s.against)?.name ?? others[0]?.name}
          </label>
        )}
        <input
          type="search"
          placeholder="Find functions"
          aria-label="Find functions in the graph"
          value={spec.search}
          onInput={(e) => change({ search: e.currentTarget.value })}
        />
        {spec.search && found && (
          <span class="dim" role="status">
            {found.names.size === 0 ? "no function" : `${percent(found.share)} in ${count(found.names.size)}`}
          </span>
        )}
        {s.selection && (
          <button class="chip" title="Show all again" onClick={() => set({ selection: null, tableRow: null })}>
            {inWords(s.selection)} <span aria-hidden="true">✕</span>
          </button>
        )}
      </div>
      {error && <p class="note bad">{error}</p>}
      {t && t.name.length === 0 && <Empty of={spec.of} />}
      {!t && loading && <p class="note">Adding up …</p>}
      {t && t.name.length > 0 && <Graph t={t} spec={spec} marked={found?.names ?? new Set()} cut={answer?.json.cut ?? ""} />}
    </div>
  );
}

function Empty({ of }: { of: FlameKind }) {
  const { selection, window } = get();
  const why = {
    blame: "Nobody was held up here.",
    cpu: "There are no CPU samples here.",
    off: "Nobody waited here, or the recording has no stacks of waits.",
    wakers: "No wait ended here, or the recording has no stacks of wakers.",
  }[of];
  return (
    <p class="note">
      {why}
      {selection && " Take the filter away to see all."}
      {window && " Press 0 for the whole recording."}
    </p>
  );
}

export function amount(t: Tree, value: number): string {
  return t.unit === "s" ? span(value * 1e9) : t.unit === "ns" ? span(value) : `${count(value)} ${t.unit}`;
}

function Graph({ t, spec, marked, cut }: { t: Tree; spec: FlameSpec; marked: Set<number>; cut: string }) {
  const [ref, box] = useBox<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [focus, setFocus] = useState<number | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const [hover, setHover] = useState<{ node: number; x: number; y: number } | null>(null);
  const [scroll, setScroll] = useState(0);
  const theme = useThemed();
  useEffect(() => {
    setFocus(null);
    setCursor(null);
    setHover(null);
  }, [t]);
  const root = focus !== null && focus < t.name.length ? focus : null;
  const boxes = useMemo(() => layout(t, root, Math.max(1, box.width)), [t, root, box.width]);
  useEffect(() => {
    const ctx = canvas.current && box.width > 0 ? begin(canvas.current, box) : null;
    if (ctx) draw(ctx, { t, boxes, of: spec.of, marked, cursor, hover: hover?.node ?? null, scroll, ...box });
  }, [t, boxes, box, spec.of, marked, cursor, hover?.node, scroll, theme]);

  const nodeAt = (e: MouseEvent): number | null => {
    const r = (e.currentTarget as HTMLElement).getBoundingClientRect();
    const [x, row] = [e.clientX - r.left, Math.floor((e.clientY - r.top + scroll) / HEIGHT)];
    return boxes.find((b) => b.row === row && x >= b.x && x < b.x + b.width)?.node ?? null;
  };
  const key = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const to = moved(t, cursor ?? root, e.key);
    if (to !== null) {
      setCursor(to);
      set({ said: describe(t, to) });
      const row = t.depth[to] ?? 0;
      const el = ref.current;
      if (el && (row * HEIGHT < el.scrollTop || (row + 1) * HEIGHT > el.scrollTop + el.clientHeight)) {
        el.scrollTop = Math.max(0, row * HEIGHT - el.clientHeight / 2);
      }
    } else if ((e.key === "Enter" || e.key === " ") && cursor !== null) setFocus(cursor === root ? null : cursor);
    else if ((e.key === "Escape" || e.key === "Backspace") && root !== null) setFocus(null);
    else if (e.key === "o" && cursor !== null) openCode(nameOf(t, cursor));
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  const told = hover?.node ?? cursor;
  const deepest = boxes.reduce((d, b) => Math.max(d, b.row), 0);
  return (
    <>
      <p class="told" aria-live="off">
        {root !== null && (
          <button class="link" onClick={() => setFocus(null)}>
            all
          </button>
        )}
        {root !== null && <span class="dim"> ▸ {nameOf(t, root)} · </span>}
        {told !== null ? (
          <span>
            <b>{nameOf(t, told)}</b> {describe(t, told)}
          </span>
        ) : (
          <span class="dim">
            {amount(t, t.total)} in all. Click zooms in, double click shows the code, arrow keys and Enter do, too. {cut}
          </span>
        )}
      </p>
      <div
        class="scroll"
        ref={ref}
        tabIndex={0}
        role="application"
        aria-label="Flame graph. Arrow keys go from frame to frame, Enter zooms, O opens the code."
        data-focus="flame"
        onScroll={(e) => setScroll(e.currentTarget.scrollTop)}
        onKeyDown={key}
        onPointerMove={(e) => {
          const node = nodeAt(e);
          setHover(node === null ? null : { node, x: e.clientX, y: e.clientY });
        }}
        onPointerLeave={() => setHover(null)}
        onClick={(e) => {
          const node = nodeAt(e);
          setCursor(node);
          if (node !== null) setFocus(node === root || t.parent[node] === NONE && t.roots.length === 1 ? null : node);
        }}
        onDblClick={(e) => {
          const node = nodeAt(e);
          if (node !== null) openCode(nameOf(t, node));
        }}
      >
        <div class="spacer" style={{ height: `${(deepest + 2) * HEIGHT}px` }}>
          <div class="sticky">
            <canvas ref={canvas} />
          </div>
        </div>
      </div>
    </>
  );
}

function describe(t: Tree, i: number): string {
  const value = t.value[i] ?? 0;
  const own = t.self[i] ?? 0;
  const parts = [`${amount(t, value)}, ${percent(t.total > 0 ? value / t.total : 0)} of all`];
  if (own > 0) parts.push(`${percent(t.total > 0 ? own / t.total : 0)} in itself`);
  const parent = t.parent[i] ?? NONE;
  if (parent !== NONE) parts.push(`${percent(value / (t.value[parent] || 1))} of its parent`);
  if (t.before) parts.push(`before ${amount(t, t.before[i] ?? 0)}`);
  return parts.join(" · ");
}

/** The node that an arrow key leads to; null for other keys. */
function moved(t: Tree, from: number | null, key: string): number | null {
  if (!key.startsWith("Arrow")) return null;
  if (from === null) return t.roots[0] ?? null;
  const parent = t.parent[from] ?? NONE;
  if (key === "ArrowUp") return parent === NONE ? from : parent;
  if (key === "ArrowDown") {
    const [first] = childrenOf(t, from);
    return first ?? from;
  }
  const row = parent === NONE ? t.roots : [...childrenOf(t, parent)];
  const i = row.indexOf(from) + (key === "ArrowRight" ? 1 : -1);
  return row[Math.min(row.length - 1, Math.max(0, i))] ?? from;
}

export { pathTo };
