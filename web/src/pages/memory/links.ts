import type { Cell, Num, Row } from "../../api/types";
import { sourceLine, timelineAt } from "../../components/links";
import type { RowLink } from "../../components/table/links";
import { findPage } from "../registry";

/** From an allocation to the operator that made it, to the moments of its life, and to the line that called it. */
export function allocationLinks(row: Row): RowLink[] {
  const rank = number(row.rank);
  const links: RowLink[] = [];
  const [start_ns, allocated_ns, freed_ns] = [row.op_start_ns, row.allocated_ns, row.freed_ns].map(number);
  if (start_ns !== null && start_ns !== undefined && typeof row.op === "string") {
    links.push({ label: "Its operator on the timeline", href: timelineAt({ rank, start_ns, name: row.op }) });
  }
  if (allocated_ns !== null && allocated_ns !== undefined) {
    links.push({ label: "Its allocation", href: timelineAt({ rank, start_ns: allocated_ns }) });
  }
  if (freed_ns !== null && freed_ns !== undefined) {
    links.push({ label: "Its free", href: timelineAt({ rank, start_ns: freed_ns }) });
  }
  if (typeof row.file === "string" && findPage("source")) {
    const line = number(row.line);
    links.push({ label: `${row.file}${line === null ? "" : `:${line}`}`, href: sourceLine(row.file, line) });
  }
  return links;
}

const number = (cell: Cell | undefined): Num | null =>
  typeof cell === "number" || typeof cell === "bigint" ? cell : null;
