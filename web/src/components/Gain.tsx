import type { Advice } from "../api/types";
import { exactGain } from "./exact_gain";

/** What there is to gain by a piece of advice, as the command says it; hovering over it says every digit and the method. */
export function Gain({ row }: { row: Advice }) {
  return (
    <span class="value" title={exactGain(row)}>
      {row.gain_says}
    </span>
  );
}
