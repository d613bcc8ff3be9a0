/** The lanes of the chain that is shown, above all others: the waiter first, the one whom all wait for last. */

import { useEffect, useMemo, useRef } from "preact/hooks";
import type { ChainAnswer, LanesAnswer, Request } from "../host/api";
import { begin, useBox, useThemed } from "../lib/canvas";
import { useAsk } from "../state/ask";
import { current, goToHop } from "../state/nav";
import { use } from "../state/store";
import { drawChain, drawCursor } from "./arrows";
import { LABEL } from "./labels";
import { drawLane, rasterize, ROW } from "./raster";

/** At most so many threads are shown; the list of hops has all. */
const MOST = 6;

/** The threads of a chain, each once, in its order. */
export function threadsOf(chain: ChainAnswer): { row: string; thread: string; hop: number }[] {
  const seen = new Map<string, { row: string; thread: string; hop: number }>();
  chain.hops.forEach((h, hop) => {
    if (h.row !== null && !seen.has(h.row)) seen.set(h.row, { row: h.row, thread: h.thread, hop });
  });
  return [...seen.values()];
}

export function ChainStrip({ hover }: { hover: number | null }) {
  const chain = use((s) => s.chain.answer);
  const threads = useMemo(() => (chain ? threadsOf(chain).slice(0, MOST) : []), [chain]);
  return threads.length > 0 ? <Strip threads={threads} hover={hover} /> : null;
}

function Strip({ threads, hover }: { threads: ReturnType<typeof threadsOf>; hover: number | null }) {
  const s = use((s) => ({ chain: s.chain.answer, window: s.window, at: s.at, hop: s.hop, trace: s.trace }));
  const [ref, box] = useBox<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemed();
  const window = current();
  const width = Math.max(1, box.width - LABEL);
  const ids = threads.map((t) => t.row);
  const request: Request | null = ids.length > 0 && box.width > 0 ? { ask: "lanes", window, px: width, ids } : null;
  const asked = useAsk<LanesAnswer>(request, "chain lanes");
  const raster = useMemo(() => (asked.answer ? rasterize(asked.answer) : null), [asked.answer, theme]);
  useEffect(() => {
    const ctx = canvas.current && box.width > 0 ? begin(canvas.current, box) : null;
    if (!ctx) return;
    threads.forEach((t, i) => raster && drawLane(ctx, raster, t.row, window, LABEL, width, i * ROW));
    const y = (row: string) => {
      const i = ids.indexOf(row);
      return i < 0 ? null : i * ROW + ROW / 2;
    };
    if (s.chain) drawChain(ctx, s.chain, { left: LABEL, width, height: box.height, window, y }, s.hop);
    drawCursor(ctx, window, LABEL, width, box.height, s.at, hover);
  }, [raster, box, window[0], window[1], s.at, s.hop, s.chain, hover, theme]);
  return (
    <div class="chain-strip" ref={ref} style={{ height: `${threads.length * ROW}px` }} aria-label="Lanes of the chain">
      <canvas ref={canvas} />
      <div class="labels">
        {threads.map((t, i) => (
          <button
            key={t.row}
            class={s.chain?.hops[s.hop]?.row === t.row ? "label on" : "label"}
            style={{ top: `${i * ROW}px` }}
            title={`${t.thread}: go there`}
            onClick={() => goToHop(t.hop)}
          >
            <span class="text">{t.thread}</span>
            <span class="dim">{i === 0 ? "waits" : i === threads.length - 1 ? "end of chain" : `hop ${t.hop + 1}`}</span>
          </button>
        ))}
      </div>
    </div>
  );
}
