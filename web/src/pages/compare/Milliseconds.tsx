import type { Num } from "../../api/types";
import { exactCell } from "../../format/cell";
import { exactMilliseconds } from "./step_parts";

/** A time with all of its digits: rounded ones would not sum. */
export function Milliseconds({ ns, isChange = false }: { ns: Num; isChange?: boolean }) {
  const [text, rest] = exactMilliseconds(ns);
  return (
    <span class="value" title={exactCell("ns", ns)}>
      {isChange && ns > 0 ? `+${text}` : text}
      <span class="rest">{rest}</span>
    </span>
  );
}
