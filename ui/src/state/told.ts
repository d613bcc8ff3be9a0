/** Asks for the chain that is shown and for what is at the cursor, whenever these change. */

import type { AtAnswer, ChainAnswer, Request, SpanAnswer } from "../host/api";
import { Cancelled } from "../host/host";
import { ask } from "./ask";
import { isSpans } from "./nav";
import { get, NOTHING_TOLD, set, subscribe, type State, type Told } from "./store";

function follow<T>(gesture: string, question: (s: State) => Request | null, put: (told: Told<T>) => Partial<State>): void {
  let asked = "";
  const look = () => {
    const s = get();
    const request = s.summary ? question(s) : null;
    const key = request ? `${s.trace}${JSON.stringify(request)}` : "";
    if (key === asked) return;
    asked = key;
    if (!request) {
      set(put(NOTHING_TOLD));
      return;
    }
    set(put({ answer: null, error: null, loading: true }));
    ask<T>(request, gesture).then(
      (answer) => {
        if (key === asked) set(put({ answer: answer.json, error: null, loading: false }));
      },
      (e: unknown) => {
        if (key !== asked || e instanceof Cancelled) return;
        set(put({ answer: null, error: e instanceof Error ? e.message : String(e), loading: false }));
      },
    );
  };
  subscribe(look);
}

export function followChain(): void {
  follow<ChainAnswer>(
    "chain",
    (s) => (s.chainOf ? { ask: "chain", ...s.chainOf } : null),
    (chain) => ({ chain }),
  );
  follow<AtAnswer>(
    "at",
    (s) => (s.point && !isSpans(s.point.row) ? { ask: "at", row: s.point.row, time: Math.round(s.point.time) } : null),
    (here) => ({ here }),
  );
  follow<SpanAnswer>(
    "span",
    (s) => (s.span !== null ? { ask: "span", id: s.span } : null),
    (spanTold) => ({ spanTold }),
  );
}
