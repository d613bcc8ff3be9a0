/**
 * Colours and patterns. A colour never says something alone: each state of a lane also has a height and a pattern, and
 * each part of a stack a pattern and a label. `test/palette.test.ts` checks with simulated colour blindness that the
 * main parts can be told apart, and that text can be read.
 */

export type Pattern = "solid" | "hatch" | "back" | "cross" | "dots" | "vertical" | "horizontal" | "dash";

/** Whether a pattern has ink at a pixel; repeats after 8. */
export function ink(pattern: Pattern, x: number, y: number): boolean {
  switch (pattern) {
    case "solid":
      return true;
    case "hatch":
      return ((x + y) & 7) > 2;
    case "back":
      return ((x - y) & 7) > 2;
    case "cross":
      return ((x + y) & 7) > 1 && ((x - y) & 7) > 1;
    case "dots":
      return !((x & 3) < 2 && (y & 3) < 2);
    case "vertical":
      return (x & 3) < 2;
    case "horizontal":
      return (y & 3) < 2;
    case "dash":
      return (x & 7) < 5;
  }
}

export interface Theme {
  name: "light" | "dark";
  bg: string;
  panel: string;
  raised: string;
  line: string;
  text: string;
  dim: string;
  accent: string;
  accentBg: string;
  good: string;
  bad: string;
  busy: string;
  spin: string;
  other: string;
  held: string;
  heldSoft: string;
  runnable: string;
  noWork: string;
  lost: string;
  disk: string;
  outside: string;
  sleep: string;
  home: string;
  mixed: string;
  overlay: string;
  grid: string;
}

export const LIGHT: Theme = {
  name: "light",
  bg: "#f4f5f6",
  panel: "#ffffff",
  raised: "#eceef1",
  line: "#d3d7dc",
  text: "#191c20",
  dim: "#57606b",
  accent: "#0b57d0",
  accentBg: "#dce8fb",
  good: "#17703f",
  bad: "#a8330a",
  busy: "#4f86c6",
  spin: "#e3b505",
  other: "#a4afbb",
  held: "#cf4a12",
  heldSoft: "#ea9a6f",
  runnable: "#9b5fa8",
  noWork: "#eef0f2",
  lost: "#5a5f66",
  disk: "#23876a",
  outside: "#5fb4c9",
  sleep: "#8f98a3",
  home: "#b6bdc6",
  mixed: "#9b8f86",
  overlay: "#101214",
  grid: "#00000014",
};

export const DARK: Theme = {
  name: "dark",
  bg: "#131518",
  panel: "#1a1d21",
  raised: "#24282e",
  line: "#343a42",
  text: "#e6e8eb",
  dim: "#a0a8b2",
  accent: "#7fb2ff",
  accentBg: "#1e3352",
  good: "#66c996",
  bad: "#ff9a70",
  busy: "#4c80bd",
  spin: "#e0b92e",
  other: "#8b939c",
  held: "#e8632b",
  heldSoft: "#a04a24",
  runnable: "#b884c6",
  noWork: "#202429",
  lost: "#8b9098",
  disk: "#3aa885",
  outside: "#66bdd2",
  sleep: "#7b8591",
  home: "#4f5863",
  mixed: "#8c8079",
  overlay: "#ffffff",
  grid: "#ffffff14",
};

/** How one state of a lane is drawn: the codes of the contract, 0 to 12. */
export interface StateLook {
  key: keyof Theme;
  pattern: Pattern;
  /** Of the lane's height. */
  height: number;
  name: string;
}

export const STATES: readonly StateLook[] = [
  { key: "panel", pattern: "solid", height: 0, name: "not there" },
  { key: "busy", pattern: "solid", height: 1, name: "runs" },
  { key: "spin", pattern: "dots", height: 1, name: "spins" },
  { key: "runnable", pattern: "vertical", height: 0.75, name: "ready, no CPU" },
  { key: "held", pattern: "hatch", height: 0.6, name: "waits for a lock" },
  { key: "disk", pattern: "horizontal", height: 0.6, name: "waits for a disk" },
  { key: "outside", pattern: "back", height: 0.45, name: "waits for outside" },
  { key: "sleep", pattern: "solid", height: 0.2, name: "sleeps" },
  { key: "home", pattern: "solid", height: 0.1, name: "idle by design" },
  { key: "sleep", pattern: "dash", height: 0.2, name: "waits for a child" },
  { key: "lost", pattern: "cross", height: 1, name: "events lost" },
  { key: "mixed", pattern: "solid", height: 0.5, name: "several states" },
  { key: "heldSoft", pattern: "hatch", height: 0.6, name: "waits for a thread" },
];

/** How one part of the accounting is drawn. */
export interface PartLook {
  key: keyof Theme;
  pattern: Pattern;
  name: string;
  doc: string;
}

export const PARTS: Readonly<Record<string, PartLook>> = {
  busy: { key: "busy", pattern: "solid", name: "busy", doc: "ran a thread of the program, and not in a spin loop" },
  spin: { key: "spin", pattern: "dots", name: "spin", doc: "ran a thread that did nothing but wait in a loop" },
  other: { key: "other", pattern: "horizontal", name: "other", doc: "ran something else than the program in focus" },
  held_up: {
    key: "held",
    pattern: "hatch",
    name: "held up",
    doc: "was idle while a thread waited for somebody who could have let it go on",
  },
  runnable_idle: {
    key: "runnable",
    pattern: "vertical",
    name: "runnable, idle",
    doc: "was idle while a thread was ready to run: scheduler, affinity or quota",
  },
  no_work: { key: "noWork", pattern: "solid", name: "no work", doc: "was idle, and no thread wanted it" },
  lost: { key: "lost", pattern: "cross", name: "lost", doc: "did what nobody knows, because events of that time are missing" },
};

/** Findings beside each other in a stack: by turns strong and soft, and hatched in turns. */
export function heldLook(index: number, chosen: boolean | null): { key: keyof Theme; pattern: Pattern } {
  const patterns: Pattern[] = ["hatch", "back", "cross", "horizontal"];
  const pattern = patterns[index % patterns.length] ?? "hatch";
  if (chosen === true) return { key: "held", pattern };
  if (chosen === false) return { key: "heldSoft", pattern };
  return { key: index % 2 === 0 ? "held" : "heldSoft", pattern };
}

const query = () => globalThis.matchMedia("(prefers-color-scheme: dark)");
let theme: Theme = LIGHT;
const tiles = new Map<string, CanvasPattern>();
const changed = new Set<() => void>();

export const currentTheme = (): Theme => theme;

export function onTheme(f: () => void): () => void {
  changed.add(f);
  return () => changed.delete(f);
}

/** Takes the theme into use, also by the style sheet, which knows the colours as variables. */
export function applyTheme(choice: "auto" | "dark" | "light"): void {
  const dark = choice === "auto" ? query().matches : choice === "dark";
  theme = dark ? DARK : LIGHT;
  tiles.clear();
  const root = document.documentElement;
  root.dataset["theme"] = theme.name;
  for (const [name, value] of Object.entries(theme)) {
    root.style.setProperty(`--${name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`, value);
  }
  for (const f of changed) f();
}

export function watchTheme(choice: () => "auto" | "dark" | "light"): void {
  query().addEventListener("change", () => applyTheme(choice()));
}

export function rgb(hex: string): [number, number, number] {
  const n = Number.parseInt(hex.slice(1, 7), 16);
  return [(n >> 16) & 255, (n >> 8) & 255, n & 255];
}

/** `share` of the colour over the other. */
export function blend(over: string, under: string, share: number): [number, number, number] {
  const [a, b] = [rgb(over), rgb(under)];
  return [0, 1, 2].map((i) => Math.round((a[i] ?? 0) * share + (b[i] ?? 0) * (1 - share))) as [number, number, number];
}

/** How much of its own colour the gaps of a pattern keep. */
export const GAP = 0.45;

/** A fill of a colour in a pattern. */
export function fill(ctx: CanvasRenderingContext2D, key: keyof Theme, pattern: Pattern): string | CanvasPattern {
  const color = theme[key];
  if (pattern === "solid") return color;
  const name = `${color}${pattern}`;
  let tile = tiles.get(name);
  if (!tile) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 8;
    const c = canvas.getContext("2d");
    if (!c) return color;
    const [r, g, b] = blend(color, theme.panel, GAP);
    for (let y = 0; y < 8; y++) {
      for (let x = 0; x < 8; x++) {
        c.fillStyle = ink(pattern, x, y) ? color : `rgb(${r},${g},${b})`;
        c.fillRect(x, y, 1, 1);
      }
    }
    tile = ctx.createPattern(canvas, "repeat") ?? undefined;
    if (!tile) return color;
    tiles.set(name, tile);
  }
  return tile;
}
