/** Lanes: what each thread, or each CPU, did. Groups by program and name; the blamed first; only what is seen is asked. */

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { LanesAnswer, Request, Row, RowsAnswer, SpanAt, SpansAnswer, Window } from "../host/api";
import { begin, useBox, useThemed } from "../lib/canvas";
import { many } from "../lib/format";
import { ask as askHost, useAsk } from "../state/ask";
import { ask, chooseSpan, current, onReveal } from "../state/nav";
import { get, set, use } from "../state/store";
import { toTime, toX } from "../graph/axis";
import { useGestures } from "../graph/gestures";
import { drawChain, drawCursor, drawName } from "./arrows";
import { ChainStrip } from "./chain";
import { laneKey, toggle } from "./keys";
import { Labels, LABEL } from "./labels";
import { Legend } from "./legend";
import { drawLane, rasterize, ROW, stretches, type Raster } from "./raster";
import { drawSpans, spanRaster, type SpanRaster } from "./spans";
import { placeAt, SpanTip, type Pointed } from "./tip";

/** Rows are asked for in blocks, so that a small scroll asks nothing. */
const BLOCK = 16;

export function Lanes() {
  const s = use((s) => ({
    lanes: s.lanes,
    open: s.open,
    window: s.window,
    point: s.point,
    told: s.spanTold.answer,
    at: s.at,
    chain: s.chain.answer,
    hop: s.hop,
    selection: s.selection,
    trace: s.trace,
    spans: s.spans && (s.summary?.spans ?? 0) > 0,
    some: (s.summary?.spans ?? 0) > 0,
  }));
  const [search, setSearch] = useState("");
  const [only, setOnly] = useState(false);
  const [ref, box] = useBox<HTMLDivElement>();
  const [scroll, setScroll] = useState(0);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState<number | null>(null);
  const theme = useThemed();
  const window = current();
  const width = Math.max(1, box.width - LABEL);

  const first = Math.floor(scroll / ROW);
  const visible = Math.ceil(box.height / ROW) + 1;
  const offset = Math.floor(first / BLOCK) * BLOCK;
  const limit = Math.ceil((visible + BLOCK) / BLOCK) * BLOCK;
  const rowsRequest: Request | null =
    box.height > 0
      ? {
          ask: "rows",
          lanes: s.lanes,
          open: s.open,
          offset,
          limit,
          ...(s.spans ? { spans: true } : {}),
          ...(search ? { search } : {}),
          ...(only && s.selection ? { selection: s.selection } : {}),
        }
      : null;
  const rows = useAsk<RowsAnswer>(rowsRequest, "rows");
  const list = rows.answer?.json.rows ?? [];
  const start = rows.to?.ask === "rows" ? rows.to.offset : 0;
  const total = rows.answer?.json.total ?? 0;

  const [pointed, setPointed] = useState<Pointed | null>(null);
  const ids = useMemo(() => list.filter((r) => r.kind !== "spans").map((r) => r.id), [rows.answer]);
  const spanIds = useMemo(() => list.filter((r) => r.kind === "spans").map((r) => r.id), [rows.answer]);
  const spansRequest: Request | null = spanIds.length > 0 && width > 1 ? { ask: "spans", window, px: width, ids: spanIds } : null;
  const spansTold = useAsk<SpansAnswer>(spansRequest, "spans");
  const spans = useMemo(() => (spansTold.answer ? spanRaster(spansTold.answer) : null), [spansTold.answer]);
  const lanesRequest: Request | null = ids.length > 0 && width > 1 ? { ask: "lanes", window, px: width, ids } : null;
  const lanes = useAsk<LanesAnswer>(lanesRequest, "lanes");
  const raster = useMemo(() => (lanes.answer ? rasterize(lanes.answer) : null), [lanes.answer, theme]);

  const rowAt = (y: number): Row | undefined => list[Math.floor((y + scroll) / ROW) - start];
  const [drag, handlers] = useGestures({
    width,
    window,
    left: LABEL,
    scrolls: true,
    move: (x, y) => {
      setHover(x);
      const row = x === null ? undefined : rowAt(y);
      setPointed(x !== null && row?.kind === "spans" ? { x, y, row } : null);
    },
    click: (x, y) => {
      const row = rowAt(y);
      if (row?.kind === "spans") void askSpan(row.id, x);
      else if (row) ask(row.id, toTime(window, width, x));
    },
  });

  const reveal = useCallback((id: string) => void bringIntoView(id, ref.current, search), [search]);
  useEffect(() => {
    onReveal(reveal);
    return () => onReveal(null);
  }, [reveal]);

  useEffect(() => {
    const ctx = canvas.current && box.width > 0 ? begin(canvas.current, box) : null;
    if (!ctx) return;
    draw(ctx, { list, start, scroll, raster, spans, width, height: box.height });
    const y = (id: string) => {
      const i = list.findIndex((r) => r.id === id);
      return i < 0 ? null : (start + i) * ROW - scroll + ROW / 2;
    };
    if (s.chain) drawChain(ctx, s.chain, { left: LABEL, width, height: box.height, window, y }, s.hop);
    drawCursor(ctx, window, LABEL, width, box.height, s.at, hover);
    if (s.told) drawChosen(ctx, s.told, s.point?.row === undefined ? null : y(s.point.row) ?? y(s.told.row), window, width);
    drawSelected(ctx, s.point, y, width, drag, box.height);
  }, [rows.answer, raster, spans, box, scroll, window[0], window[1], s.chain, s.hop, s.at, s.point, s.told, hover, drag, theme]);

  const setLanes = (lanes: "thread" | "cpu") => {
    set({ lanes, point: null });
    if (ref.current) ref.current.scrollTop = 0;
  };
  return (
    <div class="view lanes">
      <div class="tools">
        <span class="switch" role="group" aria-label="Lanes of">
          <button aria-pressed={s.lanes === "thread"} onClick={() => setLanes("thread")}>
            Threads
          </button>
          <button aria-pressed={s.lanes === "cpu"} onClick={() => setLanes("cpu")}>
            CPUs
          </button>
        </span>
        <input
          type="search"
          placeholder="Filter lanes by name"
          aria-label="Filter lanes by name"
          value={search}
          onInput={(e) => setSearch(e.currentTarget.value)}
        />
        {s.selection && (
          <label>
            <input type="checkbox" checked={only} onChange={(e) => setOnly(e.currentTarget.checked)} /> only what has a part in{" "}
            {s.selection.finding ?? "the selection"}
          </label>
        )}
        {s.some && s.lanes === "thread" && (
          <label title="Units of work, such as requests, below the threads that ran them">
            <input type="checkbox" checked={s.spans} onChange={(e) => set({ spans: e.currentTarget.checked })} /> spans
          </label>
        )}
        <span class="space" />
        <span class="dim">{total > 0 && many(total, "lane")}</span>
      </div>
      <ChainStrip hover={hover} />
      {(rows.error ?? lanes.error ?? spansTold.error) && <p class="note bad">{rows.error ?? lanes.error ?? spansTold.error}</p>}
      <div
        class="scroll"
        ref={ref}
        tabIndex={0}
        role="tree"
        aria-label="Lanes. Up and Down choose a lane, Left and Right go from change to change, Enter opens a group or asks why."
        aria-activedescendant={s.point ? `lane-${s.point.row}` : undefined}
        data-focus="lanes"
        onScroll={(e) => setScroll(e.currentTarget.scrollTop)}
        onKeyDown={(e) => laneKey(e, { list, start, total, element: ref.current, page: visible - 2, askRow })}
        onPointerLeave={() => {
          setHover(null);
          setPointed(null);
        }}
        {...handlers}
      >
        <Spacer height={total * ROW}>
          <canvas ref={canvas} />
          <Labels list={list} start={start} scroll={scroll} chosen={s.point?.row ?? null} />
          <SpanTip at={drag ? null : pointed} width={width} window={window} left={LABEL} />
        </Spacer>
        {rows.answer && total === 0 && (
          <p class="note">{search ? `No lane is called like “${search}”.` : "The recording has no threads."}</p>
        )}
      </div>
      <Legend />
    </div>
  );

  /** Chooses the span at a pixel, and shows it. */
  async function askSpan(row: string, x: number): Promise<void> {
    const { span } = (await askHost<SpanAt>(placeAt(row, x, width, window), "span at")).json;
    if (span) chooseSpan({ ...span, row }, { zoom: true });
    else set({ point: { row, time: toTime(window, width, x) }, at: toTime(window, width, x) });
  }

  /** The row at an index, from the server if it is not here. */
  async function askRow(index: number): Promise<Row | null> {
    const here = list[index - start];
    if (here || !rowsRequest) return here ?? null;
    const answer = await askHost<RowsAnswer>({ ...rowsRequest, offset: index, limit: 1 } as Request, "row");
    return answer.json.rows[0] ?? null;
  }
}

function Spacer({ height, children }: { height: number; children: preact.ComponentChildren }) {
  return (
    <div class="spacer" style={{ height: `${height}px` }}>
      <div class="sticky">{children}</div>
    </div>
  );
}

interface Drawing {
  list: Row[];
  start: number;
  scroll: number;
  raster: Raster | null;
  spans: SpanRaster | null;
  width: number;
  height: number;
}

function draw(ctx: CanvasRenderingContext2D, d: Drawing): void {
  const window = current();
  ctx.save();
  ctx.beginPath();
  ctx.rect(LABEL, 0, d.width, d.height);
  ctx.clip();
  for (const [i, row] of d.list.entries()) {
    const y = (d.start + i) * ROW - d.scroll;
    if (y < -ROW || y > d.height) continue;
    if (row.kind === "spans") {
      if (d.spans) drawSpans(ctx, d.spans, row.id, window, LABEL, d.width, y);
      continue;
    }
    if (!d.raster) continue;
    if (!drawLane(ctx, d.raster, row.id, window, LABEL, d.width, y)) continue;
    if (row.kind !== "cpu") continue;
    const scale = (d.raster.window[1] - d.raster.window[0]) / d.raster.px;
    for (const part of stretches(d.raster, row.id, 28)) {
      const x = (pixel: number) => LABEL + toX(window, d.width, (d.raster?.window[0] ?? 0) + pixel * scale);
      drawName(ctx, part.name, x(part.from), x(part.to), y + ROW / 2);
    }
  }
  ctx.restore();
}

/** A frame around the span that is chosen. */
function drawChosen(ctx: CanvasRenderingContext2D, { start, end }: { start: number; end: number }, y: number | null, window: Window, width: number): void {
  const [a, b] = [toX(window, width, start), toX(window, width, end)];
  if (y === null || b < 0 || a > width) return;
  ctx.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--text");
  ctx.lineWidth = 2;
  ctx.strokeRect(LABEL + Math.max(a, -4), y - ROW / 2 + 1, Math.max(3, Math.min(b, width + 4) - Math.max(a, -4)), ROW - 2);
}

function drawSelected(
  ctx: CanvasRenderingContext2D,
  point: { row: string; time: number } | null,
  y: (id: string) => number | null,
  width: number,
  drag: readonly [number, number] | null,
  height: number,
): void {
  const color = getComputedStyle(document.documentElement).getPropertyValue("--accent");
  if (point) {
    const middle = y(point.row);
    if (middle !== null) {
      ctx.strokeStyle = color;
      ctx.lineWidth = 1;
      ctx.strokeRect(LABEL + 0.5, middle - ROW / 2 + 0.5, width - 1, ROW - 1);
    }
  }
  if (!drag) return;
  ctx.fillStyle = color;
  ctx.globalAlpha = 0.18;
  ctx.fillRect(LABEL + Math.min(...drag), 0, Math.abs(drag[1] - drag[0]), height);
  ctx.globalAlpha = 1;
}

/** Opens the groups that a row is in, and scrolls to it. */
async function bringIntoView(id: string, element: HTMLElement | null, search: string): Promise<void> {
  const s = get();
  const lanes = id.startsWith("c") && /^c\d+$/.test(id) ? "cpu" : "thread";
  const request: Request = { ask: "rows", lanes, open: s.open, offset: 0, limit: 1, reveal: id, ...(search ? { search } : {}), ...(s.spans ? { spans: true } : {}) };
  try {
    const { json } = await askHost<RowsAnswer>(request, "reveal");
    if (json.at === null || json.at === undefined) return;
    const open = [...new Set([...get().open, ...(json.opened ?? [])])];
    set({ lanes, ...(open.length !== get().open.length ? { open } : {}) });
    const at = json.at;
    requestAnimationFrame(() => scrollTo(element, at));
  } catch {
    // The lane stays where it is: the details say all the same who it is.
  }
}

export function scrollTo(element: HTMLElement | null, index: number, tries = 10): void {
  if (!element) return;
  const y = index * ROW;
  const { scrollTop, clientHeight, scrollHeight } = element;
  // The list may still be growing by the groups that were just opened.
  if (y + ROW > scrollHeight && tries > 0) {
    setTimeout(() => scrollTo(element, index, tries - 1), 30);
    return;
  }
  if (y < scrollTop + ROW || y + 2 * ROW > scrollTop + clientHeight) element.scrollTop = Math.max(0, y - clientHeight / 3);
}

export { toggle };
