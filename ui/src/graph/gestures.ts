/** Wheel and drag on anything that has time from left to right. */

import { useRef, useState } from "preact/hooks";
import type { Window } from "../host/api";
import { panBy, zoomBy, zoomTo } from "../state/nav";
import { toTime } from "./axis";

interface Options {
  /** Pixels that are the window. */
  width: number;
  window: Window;
  /** Pixels left of the window. */
  left?: number;
  move?: (x: number | null, y: number) => void;
  click?: (x: number, y: number) => void;
  /** The wheel scrolls instead of zooming; Ctrl zooms. */
  scrolls?: boolean;
}

interface Drag {
  from: number;
  to: number;
  /** Moving instead of selecting. */
  pan: boolean;
  window: Window;
  moved: boolean;
}

/**
 * Wheel zooms (with Ctrl, where the wheel scrolls), sideways wheel or Shift moves; a drag zooms to what it covers, with
 * Shift or the middle button it moves. Less than 4 pixels is a click. Gives the drag's stretch, to be drawn.
 */
export function useGestures(o: Options) {
  const [drag, setDrag] = useState<readonly [number, number] | null>(null);
  const now = useRef<Drag | null>(null);
  const left = o.left ?? 0;
  const place = (e: MouseEvent) => {
    const r = (e.currentTarget as HTMLElement).getBoundingClientRect();
    return [e.clientX - r.left - left, e.clientY - r.top] as const;
  };

  const onWheel = (e: WheelEvent) => {
    const [x] = place(e);
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      panBy((e.shiftKey && e.deltaX === 0 ? e.deltaY : e.deltaX) / Math.max(200, o.width));
    } else if (!o.scrolls || e.ctrlKey || e.metaKey) {
      zoomBy(2 ** (-e.deltaY / 300), toTime(o.window, o.width, Math.max(0, x)));
    } else {
      return;
    }
    e.preventDefault();
  };

  const onPointerDown = (e: PointerEvent) => {
    if (e.button > 1) return;
    const [x] = place(e);
    if (x < 0) return;
    now.current = { from: x, to: x, pan: e.shiftKey || e.button === 1, window: o.window, moved: false };
    (e.currentTarget as HTMLElement).setPointerCapture(e.pointerId);
    if (e.button === 1) e.preventDefault();
  };

  const onPointerMove = (e: PointerEvent) => {
    const [x, y] = place(e);
    o.move?.(x >= 0 ? Math.min(x, o.width) : null, y);
    const d = now.current;
    if (!d) return;
    d.to = Math.min(o.width, Math.max(0, x));
    d.moved ||= Math.abs(d.to - d.from) >= 4;
    if (!d.moved) return;
    if (d.pan) {
      const by = toTime(d.window, o.width, d.from) - toTime(d.window, o.width, x);
      zoomTo([d.window[0] + by, d.window[1] + by], true);
    } else {
      setDrag([d.from, d.to]);
    }
  };

  const onPointerUp = (e: PointerEvent) => {
    const d = now.current;
    now.current = null;
    setDrag(null);
    if (!d) return;
    const [x, y] = place(e);
    if (!d.moved) o.click?.(x, y);
    else if (!d.pan) {
      const [a, b] = [Math.min(d.from, d.to), Math.max(d.from, d.to)];
      zoomTo([toTime(o.window, o.width, a), toTime(o.window, o.width, b)]);
    }
  };

  const onPointerCancel = () => {
    now.current = null;
    setDrag(null);
  };
  return [drag, { onWheel, onPointerDown, onPointerMove, onPointerUp, onPointerCancel }] as const;
}
