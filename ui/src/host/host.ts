/** Who answers: a server on this machine, or WebAssembly within the page. The page knows neither. */

import type { Request, TraceInfo } from "./api";

export interface Question {
  trace: number;
  /** A newer question of the same gesture makes this one stale. */
  gesture: string;
  turn: number;
}

export interface Host {
  /** What is open; also while something is still being read. */
  traces(): Promise<TraceInfo[]>;
  /** The framed answer; see `frame.ts`. */
  ask(request: Request & Question, signal?: AbortSignal): Promise<ArrayBuffer>;
  /** Opens a file that the user dropped on the page; only hosts that can have it. */
  open?(file: File): Promise<TraceInfo>;
}

/** A question that a newer one has replaced. */
export class Cancelled extends Error {
  constructor() {
    super("a newer question replaced this one");
  }
}
