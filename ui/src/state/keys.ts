/** Keys that work everywhere but in a field for text. */

import { nextTheme } from "../views/header";
import { close } from "../views/drawer";
import { chooseFinding, findingOf, isSpans, nextFinding, nextHop, openCode, openTab, panBy, telling, undoZoom, whole, zoomBy, zoomTo, zoomToSpan } from "./nav";
import { get, set, type Tab } from "./store";

const TAB_KEYS: readonly Tab[] = ["lanes", "processes", "table", "flame", "code", "compare", "plots"];

function focus(name: string): void {
  document.querySelector<HTMLElement>(`[data-focus="${name}"]`)?.focus();
}

/** To what is selected: the state at the cursor, else the chain's first wait, else the finding. */
function zoomToSelection(): void {
  const s = get();
  const here = s.here.answer;
  const wait = s.chain.answer?.chain.hops[0]?.wait;
  const finding = findingOf(s);
  const around = (from: number, to: number) => zoomTo([from - (to - from) * 0.15, to + (to - from) * 0.15]);
  const span = s.span !== null ? s.spanTold.answer : null;
  if (span && s.point && isSpans(s.point.row)) zoomToSpan(span);
  else if (s.point && here && here.to > here.from) around(here.from, here.to);
  else if (wait) around(wait.start_s * 1e9, wait.woken_s * 1e9);
  else if (finding) zoomTo(telling(finding.windows, whole(s)[1]));
}

/** The code of the hop that was gone to, else of the culprit. */
function code(): void {
  const s = get();
  const hop = s.chain.answer?.chain.hops[s.hop]?.did.function;
  const culprit = findingOf(s)?.culprit;
  if (hop && s.hop > 0) openCode(hop);
  else if (culprit?.function) openCode(culprit.function, culprit.module);
  else openTab("code");
}

const KEYS: Record<string, () => void> = {
  w: () => zoomBy(1.5),
  s: () => zoomBy(1 / 1.5),
  a: () => panBy(-0.25),
  d: () => panBy(0.25),
  u: undoZoom,
  "0": () => zoomTo(null),
  z: zoomToSelection,
  j: () => nextFinding(1),
  k: () => nextFinding(-1),
  n: () => nextHop(1),
  p: () => nextHop(-1),
  c: code,
  t: nextTheme,
  b: () => set({ sidebar: !get().sidebar }),
  g: () => focus("use"),
  l: () => {
    openTab("lanes");
    requestAnimationFrame(() => focus("lanes"));
  },
  "/": () => set({ overlay: "search" }),
  "?": () => set({ overlay: get().overlay === "help" ? "none" : "help" }),
};

export function listen(): void {
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const s = get();
    if (e.key === "Escape") {
      if (s.overlay !== "none") set({ overlay: "none" });
      else if (s.point || s.chainOf || s.span !== null) close();
      else if (s.finding) chooseFinding(null);
      else return;
      e.preventDefault();
      return;
    }
    if (s.overlay !== "none" && e.key !== "?") return;
    const target = e.target as HTMLElement;
    if (target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return;
    if (target instanceof HTMLInputElement && target.type !== "checkbox") return;
    if (!s.summary) return;
    const tab = /^[1-7]$/.test(e.key) ? TAB_KEYS[Number(e.key) - 1] : undefined;
    if (tab && tab !== "plots") openTab(tab);
    else {
      const act = KEYS[e.key.length === 1 ? e.key.toLowerCase() : e.key];
      if (!act) return;
      act();
    }
    e.preventDefault();
  });
}
