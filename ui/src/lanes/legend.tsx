/** What the looks of a lane mean. */

import { STATES } from "../lib/palette";
import { use } from "../state/store";
import { Patch } from "../views/patch";
import { STANDINGS } from "./spans";

const SHOWN = [1, 2, 3, 4, 12, 5, 6, 7, 8, 10];

export function Legend() {
  const spans = use((s) => s.lanes === "thread" && s.spans && (s.summary?.spans ?? 0) > 0);
  return (
    <p class="legend">
      {SHOWN.map((code) => {
        const look = STATES[code];
        return (
          look && (
            <span key={code}>
              <Patch color={look.key} pattern={look.pattern} /> {look.name}
            </span>
          )
        );
      })}
      {spans &&
        STANDINGS.map((look) => (
          <span key={look.name}>
            <Patch color={look.key} pattern={look.pattern} /> {look.name}
          </span>
        ))}
    </p>
  );
}
