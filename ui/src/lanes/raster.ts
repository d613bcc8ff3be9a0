/** Lanes as pixels: once for each answer, so that moving and zooming only stretch a picture until the next one is there. */

import type { LanesAnswer, Window } from "../host/api";
import type { Answer } from "../host/frame";
import { blend, currentTheme, GAP, ink, STATES, type Theme } from "../lib/palette";

/** Of a lane, with a pixel of space below. */
export const ROW = 18;
const BAR = 14;
const TOP = 2;
const LEVELS = 8;
/** A state that fills next to nothing of a pixel is still seen. */
const FAINTEST = 0.4;

export interface Raster {
  canvas: HTMLCanvasElement;
  window: Window;
  px: number;
  /** From a row's id to its place in the picture. */
  at: Map<string, number>;
  who: Uint32Array | null;
  names: string[];
}

interface Ink {
  from: number;
  to: number;
  /** For each level, where the pattern has ink, then where not. */
  on: Uint32Array;
  off: Uint32Array;
}

const pack = ([r, g, b]: readonly [number, number, number]): number => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

function inks(theme: Theme): Ink[] {
  return STATES.map((look) => {
    const height = Math.round(BAR * look.height);
    const from = TOP + Math.floor((BAR - height) / 2);
    const on = new Uint32Array(LEVELS);
    const off = new Uint32Array(LEVELS);
    for (let level = 0; level < LEVELS; level++) {
      const share = FAINTEST + (1 - FAINTEST) * (level / (LEVELS - 1));
      on[level] = pack(blend(theme[look.key], theme.panel, share));
      off[level] = pack(blend(theme[look.key], theme.panel, share * GAP));
    }
    return { from, to: from + height, on, off };
  });
}

export function rasterize(answer: Answer<LanesAnswer>): Raster {
  const { ids, px, window } = answer.json;
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, px);
  canvas.height = Math.max(1, ids.length * ROW);
  const ctx = canvas.getContext("2d");
  if (ctx && px > 0 && ids.length > 0) {
    const image = ctx.createImageData(px, ids.length * ROW);
    paint(new Uint32Array(image.data.buffer), answer, px, ids.length);
    ctx.putImageData(image, 0, 0);
  }
  return {
    canvas,
    window,
    px,
    at: new Map(ids.map((id, i) => [id, i])),
    who: answer.has("who") ? answer.u32("who") : null,
    names: answer.json.names ?? [],
  };
}

function paint(out: Uint32Array, answer: Answer<LanesAnswer>, px: number, rows: number): void {
  const state = answer.u8("state");
  const share = answer.u8("share");
  const run = answer.has("run") ? answer.u8("run") : null;
  const theme = currentTheme();
  const looks = inks(theme);
  const patterns = STATES.map((l) => l.pattern);
  const busy = pack(blend(theme.busy, theme.panel, 1));
  for (let row = 0; row < rows; row++) {
    for (let x = 0; x < px; x++) {
      const code = state[row * px + x] ?? 0;
      const look = looks[code];
      const pattern = patterns[code];
      if (!look || !pattern) continue;
      const level = (share[row * px + x] ?? 0) >> 5;
      const on = look.on[level] ?? 0;
      const off = look.off[level] ?? 0;
      for (let y = look.from; y < look.to; y++) out[(row * ROW + y) * px + x] = ink(pattern, x, y) ? on : off;
      const ran = run && code !== 1 && code !== 2 ? (run[row * px + x] ?? 0) : 0;
      if (ran === 0) continue;
      const high = Math.max(1, Math.round((BAR * ran) / 255));
      for (let y = TOP + BAR - high; y < TOP + BAR; y++) out[(row * ROW + y) * px + x] = busy;
    }
  }
}

/** Draws one lane of the picture where it belongs in `window`. */
export function drawLane(
  ctx: CanvasRenderingContext2D,
  raster: Raster,
  id: string,
  window: Window,
  left: number,
  width: number,
  y: number,
): boolean {
  const row = raster.at.get(id);
  if (row === undefined) return false;
  const scale = width / (window[1] - window[0]);
  const x = left + (raster.window[0] - window[0]) * scale;
  const w = (raster.window[1] - raster.window[0]) * scale;
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(raster.canvas, 0, row * ROW, raster.px, ROW, x, y, w, ROW);
  return true;
}

/** Stretches of one thread on a CPU's lane that are wide enough for a name. */
export function stretches(raster: Raster, id: string, least: number): { from: number; to: number; name: string }[] {
  const row = raster.at.get(id);
  const found: { from: number; to: number; name: string }[] = [];
  if (row === undefined || !raster.who) return found;
  const who = raster.who.subarray(row * raster.px, (row + 1) * raster.px);
  for (let i = 0; i < who.length; ) {
    let end = i + 1;
    while (end < who.length && who[end] === who[i]) end++;
    const name = raster.names[who[i] ?? 0xffffffff];
    if (name && end - i >= least) found.push({ from: i, to: end, name });
    i = end;
  }
  return found;
}
