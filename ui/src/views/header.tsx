/** The line at the top: what is open, what of it is shown, and what acts on the whole page. */

import { instant, many, span } from "../lib/format";
import { applyTheme, currentTheme } from "../lib/palette";
import { current, undoZoom, zoomTo } from "../state/nav";
import { get, set, use } from "../state/store";

export function Header({ choose }: { choose: (trace: number) => void }) {
  const s = use((s) => ({
    traces: s.traces,
    trace: s.trace,
    summary: s.summary,
    window: s.window,
    undo: s.undo.length,
    theme: s.theme,
  }));
  const [from, to] = current();
  return (
    <header>
      <span class="brand">holdup</span>
      {s.traces.length > 1 ? (
        <select aria-label="Trace" value={s.trace} onChange={(e) => choose(Number(e.currentTarget.value))}>
          {s.traces.map((t) => (
            <option key={t.id} value={t.id}>
              {t.name}
            </option>
          ))}
        </select>
      ) : (
        <span class="name">{s.traces[0]?.name ?? ""}</span>
      )}
      {s.summary && (
        <span class="facts dim">
          {span(s.summary.duration_ns)} · {many(s.summary.cpus, "CPU")} · {many(s.summary.threads, "thread")}
          {s.summary.focus && ` · focus ${s.summary.focus}`}
        </span>
      )}
      <span class="space" />
      {s.summary && (
        <>
          <span class="window" title="What is shown">
            {s.window ? `${instant(from, to - from)} – ${instant(to, to - from)}  (${span(to - from)})` : "whole recording"}
          </span>
          <button title="Undo zoom (U)" disabled={s.undo === 0} onClick={undoZoom}>
            Undo
          </button>
          <button title="Show all (0)" disabled={!s.window} onClick={() => zoomTo(null)}>
            All
          </button>
          <button title="Search threads, functions and locks (/)" onClick={() => set({ overlay: "search" })}>
            Search <kbd>/</kbd>
          </button>
        </>
      )}
      <button title="Colours (T)" onClick={nextTheme} aria-label={`Colours: ${s.theme}`}>
        {currentTheme().name === "dark" ? "☾" : "☀"}
      </button>
      <button title="Keys and what things mean (?)" onClick={() => set({ overlay: "help" })} aria-label="Help">
        ?
      </button>
    </header>
  );
}

/** The other one of light and dark. */
export function nextTheme(): void {
  const theme = currentTheme().name === "dark" ? "light" : "dark";
  set({ theme });
  applyTheme(theme);
  try {
    localStorage.setItem("holdup-theme", theme);
  } catch {
    // A page from disk may not have storage: then the choice holds until it is closed.
  }
}

export function savedTheme(): "auto" | "dark" | "light" {
  try {
    const saved = localStorage.getItem("holdup-theme");
    if (saved === "dark" || saved === "light") return saved;
  } catch {
    // As above.
  }
  return get().theme;
}
