/** Lanes of spans: boxes where one fills its pixels, a density where many lie in one. Slow ones are higher and hatched, too. */

import type { SpansAnswer, Window } from "../host/api";
import type { Answer } from "../host/frame";
import { FONT, fit } from "../lib/canvas";
import { currentTheme, fill, type Pattern, type Theme } from "../lib/palette";
import { ROW } from "./raster";

const SEVERAL = 0xffffffff;
const TOP = 1;
const BAR = 15;

/** How a span looks by its standing: the codes of the contract, 1 to 4. Shades of the text, for colours say what threads do. */
export const STANDINGS: readonly { key: keyof Theme; pattern: Pattern; height: number; name: string }[] = [
  { key: "sleep", pattern: "solid", height: 0.6, name: "span" },
  { key: "other", pattern: "dash", height: 0.6, name: "span not seen whole" },
  { key: "dim", pattern: "back", height: 0.8, name: "slowest tenth of its name" },
  { key: "text", pattern: "hatch", height: 1, name: "slowest hundredth" },
];

/** Pixels that follow each other and look alike. */
interface Stretch {
  from: number;
  to: number;
  standing: number;
  /** The tallest share in it, 0 to 1; a single span has 1. */
  share: number;
  single: boolean;
}

export interface SpanRaster {
  window: Window;
  px: number;
  rows: Map<string, { stretches: Stretch[]; labels: { from: number; to: number; text: string }[] }>;
}

export function spanRaster(answer: Answer<SpansAnswer>): SpanRaster {
  const { ids, px, window, labels } = answer.json;
  const [share, standing, span] = [answer.u8("share"), answer.u8("standing"), answer.u32("span")];
  const rows: SpanRaster["rows"] = new Map();
  ids.forEach((id, row) => {
    const stretches: Stretch[] = [];
    let last = SEVERAL;
    for (let x = 0; x < px; x++) {
      const i = row * px + x;
      const code = standing[i] ?? 0;
      if (code === 0) continue;
      const who = span[i] ?? SEVERAL;
      const before = stretches.at(-1);
      const single = who !== SEVERAL;
      if (single && before?.single && before.to === x && last === who) before.to = x + 1;
      else {
        const height = single ? 1 : Math.round((share[i] ?? 0) / 32) / 8;
        if (!single && before && !before.single && before.to === x && before.standing === code && before.share === height) before.to = x + 1;
        else stretches.push({ from: x, to: x + 1, standing: code, share: height, single });
      }
      last = who;
    }
    rows.set(id, { stretches, labels: labels.filter((l) => l.row === row) });
  });
  return { window, px, rows };
}

/** Draws one lane where it belongs in `window`. */
export function drawSpans(
  ctx: CanvasRenderingContext2D,
  raster: SpanRaster,
  id: string,
  window: Window,
  left: number,
  width: number,
  y: number,
): void {
  const row = raster.rows.get(id);
  if (!row) return;
  const theme = currentTheme();
  const scale = width / (window[1] - window[0]);
  const at = (t: number) => left + (t - window[0]) * scale;
  const pixel = (raster.window[1] - raster.window[0]) / raster.px;
  const x = (px: number) => at(raster.window[0] + px * pixel);
  for (const s of row.stretches) {
    const look = STANDINGS[s.standing - 1];
    if (!look) continue;
    const full = Math.round(BAR * look.height);
    const high = s.single ? full : Math.max(2, Math.round(full * s.share));
    const [a, b] = [x(s.from), x(s.to)];
    if (b < left || a > left + width) continue;
    const bottom = y + TOP + BAR;
    ctx.fillStyle = fill(ctx, look.key, look.pattern);
    ctx.fillRect(a, bottom - high, Math.max(1, b - a), high);
    if (!s.single || b - a < 3) continue;
    // Where one ends and the next begins is seen.
    ctx.fillStyle = theme.panel;
    ctx.fillRect(b - 1, bottom - full, 1, full);
    ctx.fillStyle = theme.text;
    ctx.fillRect(a, bottom - full, 1, full);
  }
  ctx.font = FONT;
  ctx.textAlign = "left";
  for (const label of row.labels) {
    const [a, b] = [Math.max(left, at(label.from)), Math.min(left + width, at(label.to))];
    const text = fit(ctx, label.text, b - a - 8);
    if (!text) continue;
    // Letters over a pattern need a ground of their own.
    const wide = Math.min(ctx.measureText(text).width + 4, b - a - 4);
    ctx.fillStyle = theme.panel;
    ctx.globalAlpha = 0.82;
    ctx.fillRect(a + 2, y + 2, wide, ROW - 4);
    ctx.globalAlpha = 1;
    ctx.fillStyle = theme.text;
    ctx.fillText(text, a + 4, y + ROW / 2);
  }
}
