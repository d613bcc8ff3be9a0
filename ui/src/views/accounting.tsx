/** The accounting bar: every CPU second is in one part. Its list is the legend of the graph, too. */

import { useEffect, useRef } from "preact/hooks";
import type { CpuSeconds, Explain } from "../host/api";
import { begin, useBox, useThemed } from "../lib/canvas";
import { percent, spanS } from "../lib/format";
import { currentTheme, fill, PARTS } from "../lib/palette";
import { Swatch } from "./patch";

const ORDER = ["busy", "spin", "other", "held_up", "runnable_idle", "no_work", "lost"] as const;

export function Accounting({ explain }: { explain: Explain }) {
  const sums = explain.cpu_seconds;
  const total = sums.total || 1;
  return (
    <section class="accounting" aria-label="Where the CPU time went">
      <Bar sums={sums} />
      <table>
        <tbody>
          {ORDER.map((part) => (
            <tr key={part} class={sums[part] === 0 ? "none" : ""} title={`The CPU ${PARTS[part]?.doc ?? ""}.`}>
              <td class="swatch">
                <Swatch part={part} />
              </td>
              <td>{PARTS[part]?.name}</td>
              <td class="num">{sums[part] === 0 ? "0 s" : spanS(sums[part])}</td>
              <td class="num dim">{percent(sums[part] / total)}</td>
            </tr>
          ))}
          <tr class="total">
            <td />
            <td>CPUs × time</td>
            <td class="num">{spanS(sums.total)}</td>
            <td class="num dim">{explain.trace.cpus} × {spanS(explain.trace.duration_s)}</td>
          </tr>
        </tbody>
      </table>
    </section>
  );
}

function Bar({ sums }: { sums: CpuSeconds }) {
  const [ref, box] = useBox<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemed();
  useEffect(() => {
    const ctx = canvas.current && box.width > 0 ? begin(canvas.current, box) : null;
    if (!ctx) return;
    let x = 0;
    for (const part of ORDER) {
      const w = (sums[part] / (sums.total || 1)) * box.width;
      if (w <= 0) continue;
      const look = PARTS[part];
      if (look) ctx.fillStyle = fill(ctx, look.key, look.pattern);
      // Even a sliver shows that there is some.
      ctx.fillRect(x, 0, Math.max(w, 1.5), box.height);
      x += w;
    }
    ctx.strokeStyle = currentTheme().line;
    ctx.strokeRect(0.5, 0.5, box.width - 1, box.height - 1);
  }, [sums, box, theme]);
  const words = ORDER.filter((p) => sums[p] > 0).map((p) => `${PARTS[p]?.name} ${percent(sums[p] / (sums.total || 1))}`);
  return (
    <div class="bar" ref={ref} role="img" aria-label={words.join(", ")}>
      <canvas ref={canvas} />
    </div>
  );
}
