/** What the looks of a lane mean. */

import { STATES } from "../lib/palette";
import { Patch } from "../views/patch";

const SHOWN = [1, 2, 3, 4, 12, 5, 6, 7, 8, 10];

export function Legend() {
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
    </p>
  );
}
