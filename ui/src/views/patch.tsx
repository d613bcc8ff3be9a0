/** Small pieces of the colours and patterns, for legends. */

import { useEffect, useRef } from "preact/hooks";
import { begin, useThemed } from "../lib/canvas";
import { currentTheme, fill, PARTS, type Pattern, type Theme } from "../lib/palette";

export function Swatch({ part }: { part: string }) {
  const look = PARTS[part];
  return look ? <Patch color={look.key} pattern={look.pattern} /> : null;
}

/** A small piece of a colour in its pattern. */
export function Patch({ color, pattern }: { color: keyof Theme; pattern: Pattern }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemed();
  useEffect(() => {
    const ctx = canvas.current && begin(canvas.current, { width: 14, height: 12 });
    if (!ctx) return;
    ctx.fillStyle = fill(ctx, color, pattern);
    ctx.fillRect(0, 0, 14, 12);
    ctx.strokeStyle = currentTheme().line;
    ctx.strokeRect(0.5, 0.5, 13, 11);
  }, [color, pattern, theme]);
  return <canvas class="patch" ref={canvas} aria-hidden="true" />;
}
