/** The page as a whole. */

import { Component, type ComponentChildren } from "preact";
import { Flame } from "../flame/flame";
import type { Summary } from "../host/api";
import { UseGraph } from "../graph/use";
import { Lanes } from "../lanes/lanes";
import { openTab } from "../state/nav";
import { get, use, type Tab } from "../state/store";
import { Table } from "../table/table";
import { Code } from "./code";
import { Compare } from "./compare";
import { Drawer } from "./drawer";
import { Drop } from "./drop";
import { Header } from "./header";
import { Help } from "./help";
import { Plots } from "./plots";
import { Processes } from "./processes";
import { Search } from "./search";
import { Sidebar } from "./sidebar";

export const TABS: readonly [Tab, string][] = [
  ["lanes", "Lanes"],
  ["processes", "Processes"],
  ["table", "Tables"],
  ["flame", "Flame graphs"],
  ["code", "Code"],
  ["compare", "Compare"],
];

/** Views beside which the selection is shown; the others need the room. */
const WITH_DRAWER: ReadonlySet<Tab> = new Set(["lanes", "processes", "table"]);

export function App({ choose }: { choose: (trace: number) => void }) {
  const s = use((s) => ({
    fatal: s.fatal,
    traces: s.traces,
    trace: s.trace,
    ready: s.summary !== null,
    sidebar: s.sidebar,
    said: s.said,
  }));
  const now = s.traces.find((t) => t.id === s.trace);
  return (
    <div class={s.sidebar ? "page" : "page wide"}>
      <Header choose={choose} />
      {s.fatal && (
        <main class="message">
          <h1>holdup cannot show this</h1>
          <p role="alert">{s.fatal}</p>
        </main>
      )}
      {!s.fatal && now?.kind === "plots" && <Plots />}
      {!s.fatal && now?.kind !== "plots" && !s.ready && <Waiting />}
      {!s.fatal && now?.kind !== "plots" && s.ready && <Workbench />}
      <Help />
      <Search />
      <p class="offscreen" aria-live="polite">
        {s.said}
      </p>
    </div>
  );
}

function Waiting() {
  const now = use((s) => ({ traces: s.traces, trace: s.trace, asked: s.asked }));
  const t = now.traces.find((t) => t.id === now.trace);
  if (!now.asked) return <main class="message"><p role="status">Asking what there is to show …</p></main>;
  if (now.traces.length === 0) return <Drop />;
  return (
    <main class="message">
      <p role="status">
        Reading {t?.name} {t?.reading !== undefined && `… ${Math.round(t.reading * 100)} %`}
      </p>
      {t?.reading !== undefined && <progress max={1} value={t.reading} />}
      {t?.error && <p class="bad">{t.error}</p>}
    </main>
  );
}

function Workbench() {
  const { tab, sidebar, part, several } = use((s) => ({
    tab: s.tab,
    sidebar: s.sidebar,
    part: s.summary?.part ?? null,
    several: s.traces.length > 1,
  }));
  return (
    <>
      {sidebar && <Sidebar />}
      <main>
        {part && <Part part={part} />}
        <UseGraph />
        <nav class="tabs" role="tablist" aria-label="Views" onKeyDown={tabKey}>
          {TABS.map(([t, name], i) => (
            <button
              key={t}
              role="tab"
              id={`tab-${t}`}
              aria-selected={tab === t}
              aria-controls="view"
              tabIndex={tab === t ? 0 : -1}
              disabled={t === "compare" && !several}
              title={t === "compare" && !several ? "Open two recordings to compare them: holdup view BEFORE AFTER" : undefined}
              onClick={() => openTab(t)}
            >
              {name} <kbd>{i + 1}</kbd>
            </button>
          ))}
        </nav>
        <div id="view" role="tabpanel" aria-labelledby={`tab-${tab}`}>
          <Guard key={tab}>
            {tab === "lanes" && <Lanes />}
            {tab === "processes" && <Processes />}
            {tab === "table" && <Table />}
            {tab === "flame" && <Flame />}
            {tab === "code" && <Code />}
            {tab === "compare" && <Compare />}
          </Guard>
        </div>
        {WITH_DRAWER.has(tab) && <Drawer />}
      </main>
    </>
  );
}

/** A report that holds a part of a recording says so, and what held up all of it. */
function Part({ part }: { part: NonNullable<Summary["part"]> }) {
  const windows = part.windows.map(([a, b]) => `${(a / 1e9).toFixed(2)}–${(b / 1e9).toFixed(2)} s`).join(", ");
  const causes = part.explain?.findings.slice(0, 3) ?? [];
  return (
    <p class="note part">
      This holds {windows} of {part.of.duration_s.toFixed(2)} s. {part.why}
      {causes.length > 0 && " In the whole recording: "}
      {causes.map((f, i) => (
        <span key={f.id}>
          {i > 0 && "; "}
          {f.title}
        </span>
      ))}
    </p>
  );
}

function tabKey(e: KeyboardEvent): void {
  if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
  const tabs = TABS.map(([t]) => t);
  const i = tabs.indexOf(get().tab) + (e.key === "ArrowRight" ? 1 : -1);
  const next = tabs[(i + tabs.length) % tabs.length];
  if (!next) return;
  openTab(next);
  document.getElementById(`tab-${next}`)?.focus();
  e.preventDefault();
  e.stopPropagation();
}

/** A view that fails says so, and leaves the others alone. */
class Guard extends Component<{ children: ComponentChildren }, { error: string | null }> {
  override state = { error: null };
  static override getDerivedStateFromError(e: unknown) {
    return { error: e instanceof Error ? e.message : String(e) };
  }
  override render() {
    if (!this.state.error) return this.props.children;
    return <p class="note bad">This view failed: {this.state.error}. Reload the page; if it fails again, please report it.</p>;
  }
}
