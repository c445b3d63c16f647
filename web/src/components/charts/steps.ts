// Rows of `step_breakdown` as the columns of a chart.

import type { Cell, Num, Row } from "../../api/types";
import type { Column } from "./StackedColumns";

/** The parts of a step, in the order in which they are stacked. */
export const STEP_PARTS = [
  "kernel",
  "comm",
  "memcpy",
  "memset",
  "runtime",
  "dataloader",
  "io",
  "cpu",
  "other",
] as const;

/** What stands below a column: steps of one rank, or the averages of all ranks. */
export type Axis = "steps" | "ranks";

/** The rows that belong on `axis` as columns. Averages are the rows without a step. */
export function columnsOf(rows: readonly Row[], axis: Axis, chosen: { rank?: string; step?: string }): Column[] {
  const wanted = rows.filter((row) => (row.step === null) === (axis === "ranks"));
  return wanted.map((row) => {
    const [rank, step] = [String(row.rank), row.step === null ? null : String(row.step)];
    return {
      key: `${rank} ${step} ${row.start_ns}`,
      label: axis === "steps" ? `${step}` : rank,
      title: axis === "steps" ? `step ${step} of rank ${rank}` : `rank ${rank}, average of its steps`,
      total_ns: number(row.total_ns),
      parts: STEP_PARTS.map((part) => ({ part, ns: number(row[`${part}_ns`]) })),
      isChosen: axis === "steps" ? step === chosen.step : rank === chosen.rank,
      isComplete: row.is_complete !== false,
    };
  });
}

/** The parts that any of the columns has. */
export const partsIn = (columns: readonly Column[]): readonly string[] =>
  STEP_PARTS.filter((name) => columns.some(({ parts }) => parts.some(({ part, ns }) => part === name && ns > 0)));

function number(cell: Cell | undefined): Num {
  return typeof cell === "number" || typeof cell === "bigint" ? cell : 0;
}
