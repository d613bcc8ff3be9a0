/** A canvas as wide as its box and as sharp as the screen. */

import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { onTheme } from "./palette";

export interface Box {
  width: number;
  height: number;
}

/** The size of an element, in CSS pixels; follows changes. */
export function useBox<E extends HTMLElement>(): [{ current: E | null }, Box] {
  const ref = useRef<E | null>(null);
  const [box, setBox] = useState<Box>({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => {
      const [width, height] = [Math.floor(element.clientWidth), Math.floor(element.clientHeight)];
      setBox((b) => (b.width === width && b.height === height ? b : { width, height }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, box];
}

/** The context to draw with, cleared, in CSS pixels. */
export function begin(canvas: HTMLCanvasElement, { width, height }: Box): CanvasRenderingContext2D | null {
  const ratio = globalThis.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const ctx = canvas.getContext("2d");
  if (!ctx) return null;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  ctx.font = FONT;
  ctx.textBaseline = "middle";
  return ctx;
}

export const FONT = '11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
export const MONO = '11px ui-monospace, "DejaVu Sans Mono", Consolas, monospace';

/** Draws whenever the theme changes, too. */
export function useThemed(): number {
  const [n, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => onTheme(() => again(0)), []);
  return n;
}

const widths = new Map<string, number>();

/** The text, cut with an ellipsis where it would be wider than `room` pixels; empty where nothing sensible fits. */
export function fit(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  if (room < 10) return "";
  const key = `${ctx.font}|${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 20000) widths.clear();
    width = ctx.measureText(text).width;
    widths.set(key, width);
  }
  if (width <= room) return text;
  const keep = Math.floor((text.length * (room - 8)) / width);
  return keep < 2 ? "" : `${text.slice(0, keep)}…`;
}
