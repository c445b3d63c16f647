import type { Cell, Unit } from "../api/types";
import { exactCell, shortCell } from "../format/cell";

/** A number as a person reads it; hovering over it says every digit. */
export function Value({ unit, value }: { unit: Unit; value: Cell | undefined }) {
  return (
    <span class="value" title={exactCell(unit, value)}>
      {shortCell(unit, value)}
    </span>
  );
}
