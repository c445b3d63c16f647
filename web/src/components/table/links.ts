import type { Cell, Num, Row } from "../../api/types";
import { type RowLink, sourceLine, timelineOver } from "../links";

export type { RowLink } from "../links";

/** From a row that names a place in the program to its code. */
export function codeLinks(row: Row): RowLink[] {
  if (typeof row.file !== "string") return [];
  const line = typeof row.line === "number" || typeof row.line === "bigint" ? row.line : null;
  return [{ label: "The code", href: sourceLine(row.file, line) }];
}

/** From a row that is a stretch of time to this stretch on the timeline; `length` is the column that has how long it is. */
export function stretchLinks(row: Row, length = "total_ns"): RowLink[] {
  const { rank, start_ns, [length]: length_ns } = row;
  if (typeof rank !== "number" || !isNumber(start_ns) || !isNumber(length_ns)) return [];
  return [{ label: "On the timeline", href: timelineOver({ rank, start_ns, length_ns }) }];
}

const isNumber = (cell: Cell | undefined): cell is Num => typeof cell === "number" || typeof cell === "bigint";
