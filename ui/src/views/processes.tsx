/** When each process lived, and how much CPU time it used. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { ProcessesAnswer, Request } from "../host/api";
import { begin, fit, useBox, useThemed } from "../lib/canvas";
import { instant, spanS } from "../lib/format";
import { currentTheme } from "../lib/palette";
import { useAsk } from "../state/ask";
import { current } from "../state/nav";
import { use } from "../state/store";
import { toTime, toX } from "../graph/axis";
import { useGestures } from "../graph/gestures";
import { set } from "../state/store";
import { drawCursor } from "../lanes/arrows";
import { LABEL } from "../lanes/labels";
import { ROW } from "../lanes/raster";

const BLOCK = 32;

export function Processes() {
  const s = use((s) => ({ window: s.window, at: s.at, trace: s.trace, ready: s.summary !== null }));
  const [ref, box] = useBox<HTMLDivElement>();
  const [scroll, setScroll] = useState(0);
  const [hover, setHover] = useState<number | null>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemed();
  const window = current();
  const width = Math.max(1, box.width - LABEL);
  const offset = Math.floor(scroll / ROW / BLOCK) * BLOCK;
  const limit = Math.ceil(box.height / ROW) + 2 * BLOCK;
  const request: Request | null =
    box.height > 0 && s.ready ? { ask: "processes", window, px: width, offset, limit } : null;
  const { answer, to, error } = useAsk<ProcessesAnswer>(request, "processes");
  const rows = answer?.json.rows ?? [];
  const start = to?.ask === "processes" ? to.offset : 0;
  const [drag, handlers] = useGestures({
    width,
    window,
    left: LABEL,
    scrolls: true,
    move: setHover,
    click: (x) => set({ at: toTime(window, width, x) }),
  });
  useEffect(() => {
    const ctx = canvas.current && box.width > 0 ? begin(canvas.current, box) : null;
    if (!ctx) return;
    const theme = currentTheme();
    const most = Math.max(1e-9, ...rows.map((r) => r.cpu_s));
    ctx.save();
    ctx.beginPath();
    ctx.rect(LABEL, 0, width, box.height);
    ctx.clip();
    rows.forEach((r, i) => {
      const y = (start + i) * ROW - scroll;
      if (y < -ROW || y > box.height) return;
      const x = LABEL + toX(window, width, r.from);
      const w = Math.max(2, LABEL + toX(window, width, r.to) - x);
      ctx.fillStyle = theme.raised;
      ctx.fillRect(x, y + 2, w, ROW - 5);
      ctx.fillStyle = theme.busy;
      ctx.fillRect(x, y + ROW - 6, Math.max(1, w * Math.min(1, r.cpu_s / most)), 3);
      ctx.strokeStyle = theme.line;
      ctx.strokeRect(x + 0.5, y + 2.5, w - 1, ROW - 6);
      const from = Math.max(x, LABEL);
      const text = fit(ctx, `${r.name} ${spanS(r.cpu_s)}`, Math.min(x + w, box.width) - from - 8);
      ctx.fillStyle = theme.text;
      ctx.textAlign = "left";
      if (text) ctx.fillText(text, from + 4, y + 8);
    });
    if (drag) {
      ctx.fillStyle = theme.accent;
      ctx.globalAlpha = 0.18;
      ctx.fillRect(LABEL + Math.min(...drag), 0, Math.abs(drag[1] - drag[0]), box.height);
      ctx.globalAlpha = 1;
    }
    drawCursor(ctx, window, LABEL, width, box.height, s.at, hover);
    ctx.restore();
  }, [answer, box, scroll, window[0], window[1], hover, s.at, drag, theme]);
  return (
    <div class="view processes">
      <div class="tools">
        <span class="dim">
          {answer ? `${answer.json.total.toLocaleString("en-US")} processes in this window, each from its first to its last sign of life` : ""}
        </span>
      </div>
      {error && <p class="note bad">{error}</p>}
      <div
        class="scroll"
        ref={ref}
        tabIndex={0}
        aria-label="Lifetimes of processes"
        onScroll={(e) => setScroll(e.currentTarget.scrollTop)}
        onPointerLeave={() => setHover(null)}
        {...handlers}
      >
        <div class="spacer" style={{ height: `${(answer?.json.total ?? 0) * ROW}px` }}>
          <div class="sticky">
            <canvas ref={canvas} />
            <div class="labels" role="list">
              {rows.map((r, i) => (
                <div
                  key={`${r.pid}.${r.from}`}
                  class="label"
                  role="listitem"
                  style={{ top: `${(start + i) * ROW - scroll}px`, paddingLeft: "8px" }}
                  title={`${r.name} (pid ${r.pid})\n${instant(r.from, 1e9)} – ${instant(r.to, 1e9)}`}
                >
                  <span class="text">
                    {r.name} <span class="dim">{r.pid}</span>
                  </span>
                  <span class="dim">{spanS(r.cpu_s)}</span>
                </div>
              ))}
            </div>
          </div>
        </div>
        {answer && rows.length === 0 && <p class="note">No process lived in this window.</p>}
      </div>
    </div>
  );
}
