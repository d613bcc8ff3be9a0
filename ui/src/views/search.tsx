/** Finds threads, processes, functions and locks by a part of their names. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { SearchAnswer } from "../host/api";
import { many, spanS } from "../lib/format";
import { useAsk } from "../state/ask";
import { goTo, openCode } from "../state/nav";
import { get, set, use } from "../state/store";
import { ofTable } from "../table/spec";

function go(hit: Hit | undefined): void {
  if (!hit) return;
  set({ overlay: "none" });
  hit.go();
}

interface Hit {
  group: string;
  label: string;
  detail: string;
  go: () => void;
}

export function Search() {
  const shown = use((s) => s.overlay === "search");
  return shown ? <Dialog /> : null;
}

function Dialog() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const { answer, to, error, loading } = useAsk<SearchAnswer>(text.trim() ? { ask: "search", text: text.trim(), limit: 12 } : null, "search");
  const hits = useMemo(() => (answer && text.trim() ? hitsOf(answer.json) : []), [answer, text]);
  // At once: the next key is meant for it.
  useLayoutEffect(() => input.current?.focus(), []);
  useEffect(() => setAt(0), [answer]);
  // Enter that came before the answer to what was typed waits for it.
  const hasty = useRef(false);
  const fresh = to?.ask === "search" && to.text === text.trim();
  useEffect(() => {
    if (!hasty.current || !fresh) return;
    hasty.current = false;
    go(hits[0]);
  }, [fresh, answer]);
  useEffect(() => {
    list.current?.querySelector(".on")?.scrollIntoView({ block: "nearest" });
  }, [at]);
  let group = "";
  return (
    <div class="overlay" onClick={(e) => e.target === e.currentTarget && set({ overlay: "none" })}>
      <div class="dialog search" role="dialog" aria-label="Search">
        <input
          ref={input}
          type="search"
          spellcheck={false}
          placeholder="Threads, processes, functions, locks"
          aria-label="Search"
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
          onKeyDown={(e) => {
            if (e.key === "ArrowDown") setAt(Math.min(hits.length - 1, at + 1));
            else if (e.key === "ArrowUp") setAt(Math.max(0, at - 1));
            else if (e.key === "Enter") fresh ? go(hits[at]) : (hasty.current = true);
            else return;
            e.preventDefault();
          }}
        />
        <div class="results" ref={list} role="listbox" aria-label="Results">
          {hits.map((h, i) => {
            const head = h.group !== group && (group = h.group);
            return [
              head ? (
                <h3 key={head} role="presentation">
                  {head}
                </h3>
              ) : null,
              <button key={`${h.group}${i}`} role="option" aria-selected={i === at} class={i === at ? "on" : ""} onClick={() => go(h)}>
                <span class="text">{h.label}</span> <span class="dim">{h.detail}</span>
              </button>,
            ];
          })}
          {error && <p class="note bad">{error}</p>}
          {text.trim() && !loading && answer && hits.length === 0 && <p class="note">Nothing is called like that.</p>}
          {!text.trim() && <p class="note">↑ ↓ choose, Enter goes there, Esc closes.</p>}
        </div>
      </div>
    </div>
  );
}

function hitsOf(found: SearchAnswer): Hit[] {
  const show = (row: string) => {
    set({ tab: "lanes", selection: { row }, finding: null, tableRow: null });
    const s = get();
    const [from, to] = s.window ?? [0, s.summary?.duration_ns ?? 1];
    goTo(row, s.at !== null && s.at >= from && s.at <= to ? s.at : (from + to) / 2);
  };
  return [
    ...found.threads.map((t) => ({ group: "Threads", label: t.label, detail: t.detail ?? "", go: () => show(t.row) })),
    ...found.processes.map((p) => ({ group: "Processes", label: p.label, detail: "", go: () => show(p.row) })),
    ...found.functions.map((f) => ({
      group: "Functions",
      label: f.function,
      detail: [f.process, f.module, f.samples !== undefined && many(f.samples, "sample")].filter(Boolean).join(" · "),
      go: () => openCode(f.function, f.module),
    })),
    ...found.locks.map((l) => ({
      group: "Locks",
      label: l.label,
      detail: l.wait_s === undefined ? "" : `waited for ${spanS(l.wait_s)}`,
      go: () =>
        set({
          tab: "table",
          table: { ...ofTable("locks"), by: ["lock", "process", "thread"], where: `lock == ${JSON.stringify(l.key)}` },
          expanded: [JSON.stringify([l.key])],
          selection: null,
          finding: null,
          tableRow: null,
        }),
    })),
  ];
}
