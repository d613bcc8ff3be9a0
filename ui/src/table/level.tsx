/** One level of a grouped table: the groups of a column within a group of those before it. Opened when it is needed. */

import { Fragment } from "preact";
import { useState } from "preact/hooks";
import type { Cell, Request, Selection, TableAnswer } from "../host/api";
import { cell, count } from "../lib/format";
import { useAsk } from "../state/ask";

import { get, same, set, use, type TableSpec } from "../state/store";

const FIRST = 200;

type Base = Omit<Extract<Request, { ask: "table" }>, "path" | "top">;

export function Level({ spec, base, path }: { spec: TableSpec; base: Base; path: Cell[] }) {
  const [top, setTop] = useState(FIRST);
  const { expanded, chosen } = use((s) => ({ expanded: s.expanded, chosen: s.tableRow }));
  const depth = path.length;
  const groups = spec.by.length;
  const sort = (base.sort ?? []).filter((k) => groups === 0 || isAsked(k.replace(/^-/, ""), spec, base, depth));
  const request: Request = {
    ...base,
    ...(sort.length > 0 ? { sort } : { sort: undefined }),
    ...(groups > 0 ? { path, tree: true } : {}),
    top,
  };
  const { answer, error, loading } = useAsk<TableAnswer>(request, `table ${JSON.stringify(path)}`);
  if (error) return <Wide text={error} bad groups={groups} shown={base.show.length} />;
  if (!answer) return <Wide text={loading ? "Counting …" : ""} groups={groups} shown={base.show.length} />;
  const { columns, rows, total_rows } = answer.json;
  if (rows.length === 0) {
    const text = path.length > 0 ? "Nothing." : "No row passes the filter in this window. Press 0 to show the whole recording.";
    return <Wide text={text} groups={groups} shown={base.show.length} />;
  }
  // Of a level, the group's own column comes first.
  const own = groups > 0 ? 1 : 0;
  const most = columns.map((c, i) => (i >= own && isBar(c.unit) ? Math.max(...rows.map((r) => Number(r[i] ?? 0))) : 0));
  return (
    <>
      {rows.map((row) => {
        const here = groups > 0 ? [...path, row[0] ?? null] : row;
        const key = JSON.stringify(here);
        const more = groups > 0 && depth + 1 < groups;
        const open = more && expanded.includes(key);
        const on = same(chosen, here);
        return (
          <Fragment key={key}>
            <tr
              class={on ? "on" : ""}
              aria-level={depth + 1}
              aria-expanded={more ? open : undefined}
              tabIndex={0}
              onClick={() => choose(spec, columns, row, here)}
              onKeyDown={(e) => rowKey(e, more, open, key, () => choose(spec, columns, row, here))}
            >
              {groups > 0 &&
                spec.by.map((c, i) => (
                  <td key={c} class="by">
                    {i === depth && (
                      <span class="group" title={cell(row[0] ?? null, columns[0]?.unit ?? "")}>
                        {more && (
                          <button
                            class="twisty"
                            tabIndex={-1}
                            aria-label={open ? "Close" : "Open"}
                            onClick={(e) => {
                              e.stopPropagation();
                              expand(key);
                            }}
                          >
                            {open ? "▾" : "▸"}
                          </button>
                        )}
                        {cell(row[0] ?? null, columns[0]?.unit ?? "") || <span class="dim">none</span>}
                      </span>
                    )}
                  </td>
                ))}
              {groups === 0 && <td class="by empty" />}
              <td class="bar" />
              {columns.slice(own).map((c, j) => {
                const value = row[j + own] ?? null;
                const share = (most[j + own] ?? 0) > 0 ? Number(value ?? 0) / (most[j + own] ?? 1) : 0;
                return (
                  <td key={c.name} class={c.unit === "text" ? "show text" : "show num"} title={c.unit === "text" ? String(value ?? "") : undefined}>
                    {share > 0.004 && groups > 0 && <span class="fill" style={{ width: `${(share * 100).toFixed(1)}%` }} />}
                    <span class="figure">{cell(value, c.unit)}</span>
                  </td>
                );
              })}
              <td />
            </tr>
            {open && <Level key={`${key}+`} spec={spec} base={base} path={here as Cell[]} />}
          </Fragment>
        );
      })}
      {total_rows > rows.length && (
        <tr>
          <td class="by" colSpan={Math.max(1, groups) + 2 + base.show.length}>
            <button class="link" onClick={() => setTop(top * 5)}>
              {count(total_rows - rows.length)} more: show the next {count(Math.min(total_rows - rows.length, top * 4))}
            </button>
          </td>
        </tr>
      )}
    </>
  );
}

/** Whether a level has what it is to be sorted by: its own column, or a measure. */
function isAsked(name: string, spec: TableSpec, base: Base, depth: number): boolean {
  return base.show.includes(name) || spec.by[depth] === name;
}

const isBar = (unit: string): boolean => unit === "ns" || unit === "count" || unit === "share";

function Wide({ text, groups, shown, bad = false }: { text: string; groups: number; shown: number; bad?: boolean }) {
  return (
    <tr>
      <td colSpan={Math.max(1, groups) + 2 + shown} class={bad ? "bad" : "dim"}>
        {text}
      </td>
    </tr>
  );
}

function expand(key: string): void {
  const { expanded } = get();
  set({ expanded: expanded.includes(key) ? expanded.filter((k) => k !== key) : [...expanded, key] });
}

function rowKey(e: KeyboardEvent, more: boolean, open: boolean, key: string, choose: () => void): void {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target !== e.currentTarget) return;
  const row = e.currentTarget as HTMLElement;
  const go = (next: Element | null | undefined) => next instanceof HTMLElement && next.focus();
  if (e.key === "ArrowDown") go(row.nextElementSibling);
  else if (e.key === "ArrowUp") go(row.previousElementSibling);
  else if (e.key === "ArrowRight" && more && !open) expand(key);
  else if (e.key === "ArrowLeft" && more && open) expand(key);
  else if (e.key === "Enter" || e.key === " ") choose();
  else return;
  e.preventDefault();
  e.stopPropagation();
}

/** A row becomes the selection, which filters graph and flame graphs; a single wait shows its chain. */
function choose(spec: TableSpec, columns: TableAnswer["columns"], row: Cell[], path: Cell[]): void {
  if (same(get().tableRow, path)) {
    set({ tableRow: null, selection: null });
    return;
  }
  if (spec.by.length === 0) {
    const value = (name: string) => {
      const i = columns.findIndex((c) => c.name === name);
      return i < 0 ? null : (row[i] ?? null);
    };
    const id = value("id");
    const start = value("start") ?? value("t");
    set({
      tableRow: path,
      ...(spec.table === "waits" && typeof id === "number" ? { chainOf: { wait: id }, hop: 0, point: null } : {}),
      ...(typeof start === "number" ? { at: start } : {}),
    });
    return;
  }
  const selection: Selection = {};
  path.forEach((value, i) => {
    const by = spec.by[i];
    if (value === null || value === "") return;
    if (by === "process") selection.process = String(value);
    else if (by === "thread") selection.thread = String(value);
    else if (by === "function" || by === "blocked") selection.function = String(value);
    else if (by === "lock") selection.lock = String(value);
  });
  set({ tableRow: path, selection: Object.keys(selection).length > 0 ? selection : null, finding: null });
}

