/** Tables as in Windows Performance Analyzer: columns left of the bar group, right of it they are summed. */

import { useMemo, useState } from "preact/hooks";
import type { Request, Selection, TableAnswer, TableInfo } from "../host/api";
import { csvLine, many } from "../lib/format";
import { copy } from "../lib/copy";
import { ask } from "../state/ask";
import { current, findingOf } from "../state/nav";
import { get, set, use, type TableSpec } from "../state/store";
import { Header } from "./header";
import { Level } from "./level";
import { clean, fromPreset, ofTable, titled } from "./spec";

/** What all levels of the tree ask alike. */
export function question(spec: TableSpec, info: TableInfo): Omit<Extract<Request, { ask: "table" }>, "path" | "top"> {
  const s = get();
  const flat = spec.by.length === 0;
  return {
    ask: "table",
    table: spec.table,
    by: spec.by,
    show: spec.show.length > 0 ? spec.show : flat ? info.default_columns : info.default_measures,
    window: current(s),
    ...(spec.where ? { where: [spec.where] } : {}),
    ...(spec.sort.length > 0 ? { sort: spec.sort } : {}),
    ...(filter(spec.table) ? { selection: filter(spec.table) } : {}),
  };
}

/**
 * What the table is restricted to: of a finding where its waiters waited, or what its culprit ran. A row of the table that
 * was selected filters the graph, not the table that it is in.
 */
export function filter(table: string): Selection | undefined {
  const s = get();
  if (!s.selection || (s.tableRow !== null && !s.selection.finding)) return undefined;
  if (!s.selection.finding) return s.selection;
  const f = findingOf(s, s.selection.finding);
  if (!f) return undefined;
  if (table === "waits" && f.waiters.function) return { function: f.waiters.function };
  if (table === "cpu" && f.culprit.thread) return { process: f.culprit.process, thread: f.culprit.thread };
  return undefined;
}

export function Table() {
  const s = use((s) => ({
    spec: s.table,
    summary: s.summary,
    window: s.window,
    selection: s.selection,
    row: s.tableRow,
    trace: s.trace,
  }));
  const [word, say] = useState("");
  const [draft, setDraft] = useState<string | null>(null);
  const info = s.summary?.tables.find((t) => t.name === s.spec.table) ?? s.summary?.tables[0];
  const spec = useMemo(() => (info ? clean(s.spec, info) : s.spec), [s.spec, info]);
  if (!info || !s.summary) return <p class="note">Reading …</p>;
  const base = question(spec, info);
  const change = (patch: Partial<TableSpec>) =>
    set({ table: { ...spec, preset: "", ...patch }, expanded: [], tableRow: null });

  return (
    <div class="view table">
      <div class="tools">
        <label>
          <span class="dim">Table</span>{" "}
          <select
            aria-label="Table"
            value={spec.table}
            onChange={(e) => set({ table: ofTable(e.currentTarget.value), expanded: [], tableRow: null })}
          >
            {s.summary.tables.map((t) => (
              <option key={t.name} value={t.name} title={t.doc}>
                {t.name}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span class="dim">Question</span>{" "}
          <select
            aria-label="Question"
            value={spec.preset}
            onChange={(e) => {
              const preset = get().summary?.presets.find((p) => p.name === e.currentTarget.value);
              if (preset) set({ table: fromPreset(preset), expanded: [], tableRow: null });
            }}
          >
            <option value="">own</option>
            {s.summary.presets.map((p) => (
              <option key={p.name} value={p.name} title={p.doc}>
                {titled(p.name)}
              </option>
            ))}
          </select>
        </label>
        <input
          class="where"
          type="text"
          spellcheck={false}
          placeholder="Filter, such as  kind == lock and wait > 1ms"
          aria-label="Filter"
          value={draft ?? spec.where}
          onInput={(e) => setDraft(e.currentTarget.value)}
          onKeyDown={(e) => e.key === "Enter" && e.currentTarget.blur()}
          onBlur={() => {
            if (draft !== null && draft !== spec.where) change({ where: draft.trim() });
            setDraft(null);
          }}
        />
        {(filter(spec.table) ?? (s.row && s.selection)) && (
          <button class="chip" title="Show all again" onClick={() => set({ selection: null, tableRow: null })}>
            {inWords(filter(spec.table) ?? s.selection ?? {})} <span aria-hidden="true">✕</span>
          </button>
        )}
        <span class="space" />
        <span class="dim" role="status">
          {word}
        </span>
        <button onClick={() => void copyCsv(base, say)}>Copy CSV</button>
      </div>
      <div class="scroll" data-focus="table">
        <table class="grouped">
          <Header spec={spec} info={info} change={change} />
          <tbody>
            <Level spec={spec} base={base} path={[]} />
          </tbody>
        </table>
      </div>
    </div>
  );
}

export function inWords(s: Selection): string {
  if (s.finding) return `only ${s.finding}`;
  const words = Object.entries(s).map(([of, what]) => what && (of === "function" ? `in ${what.replace(/^.*::/, "")}` : what));
  return `only ${words.filter(Boolean).join(" ")}`;
}

/** All groups at full depth, as a spreadsheet takes them. */
async function copyCsv(base: ReturnType<typeof question>, say: (word: string) => void): Promise<void> {
  say("copying …");
  try {
    const { json } = await ask<TableAnswer>({ ...base, top: 100_000 }, "csv");
    const head = json.columns.map((c) => (["text", "count", "number", "share"].includes(c.unit) ? c.name : `${c.name} (${c.unit})`));
    await copy(csvLine(head) + json.rows.map(csvLine).join(""));
    say(`${many(json.rows.length, "row")} copied`);
  } catch (e) {
    say(e instanceof Error ? e.message : String(e));
  }
  setTimeout(() => say(""), 4000);
}
