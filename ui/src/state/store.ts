/** One object holds what the page shows; parts of the page look at what they need of it. */

import { useEffect, useReducer, useRef } from "preact/hooks";
import type { AtAnswer, Cell, ChainAnswer, Explain, Selection, SpanAnswer, Summary, TraceInfo, Window } from "../host/api";

export type Tab = "lanes" | "processes" | "table" | "flame" | "code" | "compare" | "plots";

export interface TableSpec {
  table: string;
  preset: string;
  by: string[];
  show: string[];
  where: string;
  sort: string[];
}

export type FlameKind = "cpu" | "off" | "wakers" | "blame";

export interface FlameSpec {
  of: FlameKind;
  callers: boolean;
  leftHeavy: boolean;
  differential: boolean;
  search: string;
}

/** A place on a lane. */
export interface Point {
  row: string;
  time: number;
}

/** A wait by its number, by thread and time, by time alone (the longest then), or a telling one of a finding. */
export interface ChainOf {
  wait?: number;
  row?: string;
  time?: number;
  finding?: string;
}

/** What a deep link holds. */
export interface View {
  trace: number;
  /** null: all of it. */
  window: Window | null;
  finding: string | null;
  tab: Tab;
  lanes: "thread" | "cpu";
  open: string[];
  /** Where the cursor of the lanes stands. */
  point: Point | null;
  /** Where the cursor of the use graph stands. */
  at: number | null;
  /** Whose chain is shown. */
  chainOf: ChainOf | null;
  /** The span that is chosen; not beside a chain. */
  span: number | null;
  table: TableSpec;
  flame: FlameSpec;
  code: { function: string; module: string } | null;
  against: number | null;
  selection: Selection | null;
}

export interface State extends View {
  traces: TraceInfo[];
  /** Whether the host has told which traces there are. */
  asked: boolean;
  summary: Summary | null;
  /** The answer to what held the program up; it takes longer than all else. */
  explain: Explain | null;
  explainError: string | null;
  /** Of the page as a whole: nothing can be shown. */
  fatal: string | null;
  /** Windows before zooming, the latest last. */
  undo: (Window | null)[];
  overlay: "none" | "help" | "search";
  theme: "auto" | "dark" | "light";
  drawer: number;
  sidebar: boolean;
  /** A short word about what just happened, read out by screen readers. */
  said: string;
  /** Expanded rows of the table: their paths as JSON. */
  expanded: string[];
  tableRow: Cell[] | null;
  /** The hop of the chain that was gone to last. */
  hop: number;
  chain: Told<ChainAnswer>;
  /** What is at `point`. */
  here: Told<AtAnswer>;
  /** What became of `span`. */
  spanTold: Told<SpanAnswer>;
  /** Whether the lanes show spans. */
  spans: boolean;
}

/** An answer on its way or come. */
export interface Told<T> {
  answer: T | null;
  error: string | null;
  loading: boolean;
}

export const NOTHING_TOLD: Told<never> = { answer: null, error: null, loading: false };

export const DEFAULT_VIEW: View = {
  trace: 0,
  window: null,
  finding: null,
  tab: "lanes",
  lanes: "thread",
  open: [],
  point: null,
  at: null,
  chainOf: null,
  span: null,
  table: { table: "waits", preset: "", by: ["process", "thread", "kind"], show: [], where: "", sort: [] },
  flame: { of: "blame", callers: false, leftHeavy: true, differential: false, search: "" },
  code: null,
  against: null,
  selection: null,
};

let state: State = {
  ...DEFAULT_VIEW,
  traces: [],
  asked: false,
  summary: null,
  explain: null,
  explainError: null,
  fatal: null,
  undo: [],
  overlay: "none",
  theme: "auto",
  drawer: 230,
  sidebar: true,
  said: "",
  expanded: [],
  tableRow: null,
  hop: 0,
  chain: NOTHING_TOLD,
  here: NOTHING_TOLD,
  spanTold: NOTHING_TOLD,
  spans: true,
};

const listeners = new Set<() => void>();

export const get = (): State => state;

export function set(patch: Partial<State>): void {
  state = { ...state, ...patch };
  for (const listener of [...listeners]) listener();
}

export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** What `pick` takes of the state; draws again only when that changes (shallowly, for objects and arrays). */
export function use<T>(pick: (s: State) => T): T {
  const [, again] = useReducer((n: number) => n + 1, 0);
  const picked = pick(state);
  const last = useRef(picked);
  const how = useRef(pick);
  last.current = picked;
  how.current = pick;
  useEffect(() => {
    const look = () => {
      const now = how.current(state);
      if (same(now, last.current)) return;
      last.current = now;
      again(0);
    };
    // Effects run after the next frame: what was told between drawing and now reached nobody.
    look();
    return subscribe(look);
  }, []);
  return picked;
}

export function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const x = a as Record<string, unknown>;
  const y = b as Record<string, unknown>;
  const keys = Object.keys(x);
  return keys.length === Object.keys(y).length && keys.every((k) => Object.is(x[k], y[k]));
}
