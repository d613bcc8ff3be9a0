/** Questions to the host, as parts of the page ask them. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Request } from "../host/api";
import { unpack, type Answer } from "../host/frame";
import { Cancelled, type Host } from "../host/host";
import { get } from "./store";

let host: Host;
let turns = 0;
/** Gestures of this page are not those of another one that shows the same. */
const page = crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36) ?? "";

export function setHost(h: Host): void {
  host = h;
}

export const theHost = (): Host => host;

/** Times from a question to its answer, in milliseconds, for the tests of speed. */
export const timings: { gesture: string; ms: number }[] = [];

/** Questions under way, for the tests of speed. */
export let underWay = 0;

export async function ask<T>(request: Request, gesture: string, trace = get().trace, signal?: AbortSignal): Promise<Answer<T>> {
  const from = performance.now();
  underWay++;
  let answer: Answer<T>;
  try {
    answer = unpack<T>(await host.ask({ ...request, trace, gesture: `${page} ${trace} ${gesture}`, turn: ++turns }, signal));
  } finally {
    underWay--;
  }
  if (timings.push({ gesture, ms: performance.now() - from }) > 5000) timings.splice(0, 2500);
  return answer;
}

export interface Asked<T> {
  /** The latest answer, maybe to an earlier question. */
  answer: Answer<T> | null;
  /** The question that it answers. */
  to: Request | null;
  error: string | null;
  loading: boolean;
}

/**
 * The answer to `request`, asked anew whenever that changes. At most one question of a gesture is under way: of those
 * that come meanwhile only the newest is asked, so that a fast hand does not queue up work. An older answer stays until
 * the new one is there. `null` asks nothing.
 */
export function useAsk<T>(request: Request | null, gesture: string, trace?: number): Asked<T> {
  const [asked, setAsked] = useState<Asked<T>>({ answer: null, to: null, error: null, loading: request !== null });
  const waiting = useRef<{ request: Request; trace: number; key: string } | null>(null);
  const busy = useRef(false);
  const alive = useRef(true);
  const of = trace ?? get().trace;
  const key = request ? `${of}\u0000${JSON.stringify(request)}` : "";
  const latest = useRef(key);

  useEffect(() => {
    alive.current = true;
    return () => {
      alive.current = false;
    };
  }, []);

  useEffect(() => {
    latest.current = key;
    if (!request) {
      waiting.current = null;
      setAsked({ answer: null, to: null, error: null, loading: false });
      return;
    }
    waiting.current = { request, trace: of, key };
    setAsked((a) => (a.loading ? a : { ...a, loading: true }));
    if (!busy.current) void run();
  }, [key]);

  async function run() {
    busy.current = true;
    while (waiting.current && alive.current) {
      const { request, trace, key } = waiting.current;
      waiting.current = null;
      let next: Partial<Asked<T>> | null;
      try {
        next = { answer: await ask<T>(request, gesture, trace), to: request, error: null };
      } catch (e) {
        next = e instanceof Cancelled ? null : { answer: null, error: e instanceof Error ? e.message : String(e) };
      }
      if (!alive.current || !next || latest.current === "") continue;
      const done = next;
      setAsked((a) => ({ ...a, ...done, loading: latest.current !== key }));
    }
    busy.current = false;
  }
  return asked;
}
