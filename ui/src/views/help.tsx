/** Keys, and what colours and words mean. */

import { PARTS, STATES } from "../lib/palette";
import { set, use } from "../state/store";
import { Patch, Swatch } from "./patch";

export const KEYS: readonly [string, string][] = [
  ["W  S", "zoom in, zoom out, at the cursor"],
  ["A  D", "move left, move right"],
  ["U", "undo the zoom"],
  ["0", "show the whole recording"],
  ["Z", "zoom to what is selected"],
  ["J  K", "next cause, previous cause"],
  ["N  P", "next hop of the chain, previous hop"],
  ["C", "code of the culprit, or of the hop"],
  ["1 … 7", "Lanes, Processes, Tables, Flame, Code, Compare, Plots"],
  ["G", "to the graph of CPU use: ← → move the cursor, Enter asks who held the CPUs up there"],
  ["L", "to the lanes: ↑ ↓ choose, ← → go from change to change, Enter opens a group or asks why; on spans ← → go from one to the next, Enter shows it"],
  ["/", "search threads, processes, functions, locks"],
  ["T", "light or dark"],
  ["B", "show or hide the left column"],
  ["Esc", "close, or choose nothing"],
  ["Alt ← →", "on the head of a table's column: move it, also across the bar; Delete removes it"],
];

const MOUSE: readonly [string, string][] = [
  ["Drag", "zooms to what it covers"],
  ["Wheel", "zooms on the graph; on lanes it scrolls, and zooms with Ctrl"],
  ["Shift + drag", "moves; so do Shift + wheel and the middle button"],
  ["Click", "on a gap of the graph: who held the CPUs up; on a lane: what is there, and why; on a span: what its time was"],
  ["Drag a head", "moves a table's column, also across the bar"],
];

export function Help() {
  const shown = use((s) => s.overlay === "help");
  if (!shown) return null;
  return (
    <div class="overlay" onClick={(e) => e.target === e.currentTarget && set({ overlay: "none" })}>
      <div class="dialog help" role="dialog" aria-label="Help">
        <button class="close" autoFocus aria-label="Close" onClick={() => set({ overlay: "none" })}>
          ✕
        </button>
        <div class="columns">
          <section>
            <h2>Keys</h2>
            <Pairs of={KEYS} />
            <h2>Mouse</h2>
            <Pairs of={MOUSE} />
          </section>
          <section>
            <h2>Each second of a CPU is in one of these</h2>
            <dl class="looks">
              {Object.entries(PARTS).map(([part, look]) => (
                <>
                  <dt key={part}>
                    <Swatch part={part} /> {look.name}
                  </dt>
                  <dd>it {look.doc}</dd>
                </>
              ))}
            </dl>
            <h2>Lanes</h2>
            <p class="looks">
              {STATES.filter((l) => l.height > 0 && l.key !== "mixed").map((l) => (
                <span key={l.name}>
                  <Patch color={l.key} pattern={l.pattern} /> {l.name}
                </span>
              ))}
            </p>
            <p class="dim">
              The higher, the closer to running. Frames and arrows are the chain that was asked for: an arrow leads from who ended a
              wait to who waited; a broken one from the owner of its lock. The line over the graph is the CPU use of the culprit, or
              of what was selected.
            </p>
          </section>
        </div>
      </div>
    </div>
  );
}

function Pairs({ of }: { of: readonly [string, string][] }) {
  return (
    <dl class="keys">
      {of.map(([key, doc]) => (
        <>
          <dt key={key}>
            <kbd>{key}</kbd>
          </dt>
          <dd>{doc}</dd>
        </>
      ))}
    </dl>
  );
}
