/** What a table shows, as the user puts it together. */

import type { ColumnInfo, Preset, TableInfo } from "../host/api";
import type { TableSpec } from "../state/store";

const GROUPS: Record<string, string[]> = {
  waits: ["process", "thread", "kind", "function"],
  cpu: ["process", "module", "function"],
  switches: ["process", "thread"],
  wakes: ["waker-process", "waker-thread", "thread"],
  locks: ["process", "lock"],
};

/** The words before a column's name in a measure. */
export const KINDS = ["sum", "mean", "max", "p50", "p99", "share"] as const;

export function ofTable(table: string): TableSpec {
  return { table, preset: "", by: GROUPS[table] ?? [], show: [], where: "", sort: [] };
}

export function fromPreset(p: Preset): TableSpec {
  return { table: p.table, preset: p.name, by: [...p.by], show: [...p.show], where: p.filter ?? "", sort: [...p.sort] };
}

/** `who-waits-longest` as words. */
export function titled(name: string): string {
  const words = name.replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Without columns that the table has not, which an old link may name. */
export function clean(spec: TableSpec, info: TableInfo): TableSpec {
  const known = (c: string) => column(info, c) !== undefined;
  return { ...spec, table: info.name, by: spec.by.filter(known) };
}

/** A column by its name; `depth:3` is of `depth:N`. */
export function column(info: TableInfo, name: string): ColumnInfo | undefined {
  return info.columns.find((c) => c.name === name || c.name === name.replace(/:\d+$/, ":N"));
}

/** What a column right of the bar is about: the column of a measure, or itself. */
export function subject(name: string): string {
  const [kind = "", ...rest] = name.split(":");
  return rest.length > 0 && /^(sum|mean|max|share|p[\d.]+)$/.test(kind) ? rest.join(":") : name;
}

/** Whether a sum of the column means anything. */
export const addsUp = (c: ColumnInfo): boolean => c.unit === "ns" || c.unit === "count";

/** Takes `name` out of a list, and puts it at `at` if that is given. */
export function placed(list: readonly string[], name: string, at?: number): string[] {
  const was = list.indexOf(name);
  const rest = list.filter((x) => x !== name);
  if (at === undefined) return rest;
  const to = was >= 0 && was < at ? at - 1 : at;
  return [...rest.slice(0, to), name, ...rest.slice(to)];
}

/** What a column becomes when it is dragged right of the bar. */
export function measure(c: ColumnInfo): string | null {
  return addsUp(c) ? `sum:${c.name}` : null;
}
