/** Marks on an axis at round values. */

import type { Window } from "../host/api";

/** A round step such that about `wanted` fit into `length`. */
export function step(length: number, wanted: number): number {
  const raw = length / Math.max(1, wanted);
  const scale = 10 ** Math.floor(Math.log10(raw));
  const lead = raw / scale;
  return scale * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

export function ticks([from, to]: readonly [number, number], wanted: number): number[] {
  const by = step(to - from, wanted);
  const first = Math.ceil(from / by);
  const all: number[] = [];
  for (let i = first; i * by <= to && all.length < 1000; i++) all.push(i * by);
  return all;
}

/** Marks of time: with the unit that suits what is seen, as long labels need room. */
export function timeTicks([from, to]: Window, width: number): { at: number; text: string }[] {
  const length = to - from;
  const by = step(length, Math.max(2, width / 110));
  const [scale, unit] = by >= 1e8 || from >= 100e9 ? [1e9, "s"] : by >= 1e5 ? [1e6, "ms"] : [1e6, "ms"];
  const places = Math.max(0, Math.ceil(-Math.log10(by / scale) - 1e-9));
  return ticks([from, to], Math.max(2, width / 110)).map((at) => ({ at, text: `${(at / scale).toFixed(places)} ${unit}` }));
}

/** From time to pixel and back. */
export const toX = ([from, to]: Window, width: number, t: number): number => ((t - from) / (to - from)) * width;
export const toTime = ([from, to]: Window, width: number, x: number): number => from + (x / width) * (to - from);
