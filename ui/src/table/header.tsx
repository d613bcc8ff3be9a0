/** The heads of the columns: dragged, or moved by Alt with the arrow keys, within their side of the bar and across it. */

import { useState } from "preact/hooks";
import type { TableInfo } from "../host/api";
import type { TableSpec } from "../state/store";
import { addsUp, column, KINDS, measure, placed, subject } from "./spec";

interface Props {
  spec: TableSpec;
  info: TableInfo;
  change: (patch: Partial<TableSpec>) => void;
}

type Side = "by" | "show";

export function Header({ spec, info, change }: Props) {
  const [over, setOver] = useState<string | null>(null);
  const flat = spec.by.length === 0;
  const show = spec.show.length > 0 ? spec.show : flat ? info.default_columns : info.default_measures;

  /** Puts a column at a place of a side. */
  const put = (name: string, side: Side, at: number) => {
    setOver(null);
    if (side === "by") {
      const plain = subject(name);
      const c = column(info, plain);
      if (!c || plain === "count" || plain === "share") return;
      const rest = flat ? [] : show.includes(name) && name === plain ? placed(show, name) : spec.show;
      change({ by: placed(spec.by, plain, at), show: rest, sort: [] });
      return;
    }
    const wasGroup = spec.by.includes(name);
    const by = placed(spec.by, name);
    if (by.length === 0 && wasGroup) {
      change({ by, show: [], sort: [] });
      return;
    }
    const c = column(info, name);
    const as = show.includes(name) || by.length === 0 ? name : c ? measure(c) : null;
    change({ by, show: as ? placed(show, as, at) : wasGroup ? spec.show : show, sort: [] });
  };
  const drop = (side: Side, at: number) => ({
    onDragOver: (e: DragEvent) => {
      e.preventDefault();
      setOver(`${side}${at}`);
    },
    onDragLeave: () => setOver(null),
    onDrop: (e: DragEvent) => {
      e.preventDefault();
      const name = e.dataTransfer?.getData("text/x-holdup-column");
      if (name) put(name, side, at);
    },
  });

  const head = (name: string, side: Side, i: number) => {
    const plain = subject(name);
    const doc = column(info, plain)?.doc ?? (name === "count" ? "How many rows." : "");
    const wpa = column(info, plain)?.wpa ?? [];
    const sorted = spec.sort[0] === name ? "ascending" : spec.sort[0] === `-${name}` ? "descending" : undefined;
    return (
      <th
        key={`${side}${name}`}
        scope="col"
        class={`${side} ${over === `${side}${i}` ? "over" : ""} ${side === "show" && !flat ? "num" : ""}`}
        aria-sort={sorted ?? "none"}
        {...drop(side, i)}
      >
        <button
          draggable
          title={`${doc}${wpa.length > 0 ? `\nWPA: ${wpa.join(", ")}` : ""}\nClick sorts. Drag moves, also across the bar; Alt with ← and → does, too. Delete removes.`}
          onDragStart={(e) => {
            e.dataTransfer?.setData("text/x-holdup-column", name);
            if (e.dataTransfer) e.dataTransfer.effectAllowed = "move";
          }}
          onClick={() => change({ sort: [sorted === "descending" ? name : `-${name}`], preset: spec.preset })}
          onKeyDown={(e) => {
            if (e.key === "Delete") {
              if (side === "by") change({ by: placed(spec.by, name), show: spec.by.length === 1 ? [] : spec.show, sort: [] });
              else change({ show: placed(show, name), sort: [] });
            } else if (e.altKey && e.key === "ArrowLeft") {
              if (side === "show" && i === 0) put(name, "by", spec.by.length);
              else put(name, side, Math.max(0, i - 1));
            } else if (e.altKey && e.key === "ArrowRight") {
              if (side === "by" && i === spec.by.length - 1) put(name, "show", 0);
              else put(name, side, i + 2);
            } else return;
            e.preventDefault();
            e.stopPropagation();
          }}
        >
          {name}
          <span class="sort" aria-hidden="true">
            {sorted === "ascending" ? " ▲" : sorted === "descending" ? " ▼" : ""}
          </span>
        </button>
      </th>
    );
  };

  return (
    <thead>
      <tr>
        {flat ? (
          <th class="by empty" {...drop("by", 0)}>
            drag a column here to group
          </th>
        ) : (
          spec.by.map((c, i) => head(c, "by", i))
        )}
        <th class={over === "barb" ? "bar over" : "bar"} aria-hidden="true" {...drop("by", spec.by.length)} />
        {show.map((c, i) => head(c, "show", i))}
        <th class="add" {...drop("show", show.length)}>
          <Add spec={spec} info={info} show={show} change={change} />
        </th>
      </tr>
    </thead>
  );
}

function Add({ spec, info, show, change }: Props & { show: string[] }) {
  const flat = spec.by.length === 0;
  const add = (value: string) => {
    const [side, name = ""] = value.split("|");
    if (side === "by") change({ by: [...spec.by, name], show: flat ? [] : spec.show, sort: [] });
    else if (side === "show") change({ show: [...show, name], sort: [] });
  };
  const numbered = info.columns.filter((c) => c.name.endsWith(":N")).map((c) => ({ ...c, name: c.name.replace(":N", ":1") }));
  const columns = [...info.columns.filter((c) => !c.name.endsWith(":N")), ...numbered];
  return (
    <select aria-label="Add a column" title="Add a column" value="" onChange={(e) => add(e.currentTarget.value)}>
      <option value="">+</option>
      <optgroup label="Group by">
        {columns
          .filter((c) => !spec.by.includes(c.name))
          .map((c) => (
            <option key={c.name} value={`by|${c.name}`} title={c.doc}>
              {c.name}
            </option>
          ))}
      </optgroup>
      {flat ? (
        <optgroup label="Show">
          {columns
            .filter((c) => !show.includes(c.name))
            .map((c) => (
              <option key={c.name} value={`show|${c.name}`} title={c.doc}>
                {c.name}
              </option>
            ))}
        </optgroup>
      ) : (
        <optgroup label="Sum up">
          <option value="show|count">count</option>
          {columns.filter(addsUp).flatMap((c) =>
            KINDS.map((k) => `${k}:${c.name}`)
              .filter((m) => !show.includes(m))
              .map((m) => (
                <option key={m} value={`show|${m}`}>
                  {m}
                </option>
              )),
          )}
        </optgroup>
      )}
    </select>
  );
}
