// Rows of `step_breakdown` as the columns of a chart.

import type { Cell, Num, Row } from "../../api/types";
import type { PartColumn } from "./rank_bars";
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

/** The same, each with the column of the analysis. */
export const STEP_COLUMNS = STEP_PARTS.map((part): PartColumn => [part, `${part}_ns`]);

/** The rows of steps as columns. Averages, which have no step, are none. */
export function columnsOf(rows: readonly Row[], chosen: string | undefined): Column[] {
  return rows
    .filter((row) => row.step !== null)
    .map((row) => ({
      key: `${row.rank} ${row.step} ${row.start_ns}`,
      label: `${row.step}`,
      title: `step ${row.step} of rank ${row.rank}`,
      total_ns: number(row.total_ns),
      parts: STEP_COLUMNS.map(([part, column]) => ({ part, ns: number(row[column]) })),
      isChosen: String(row.step) === chosen,
      isComplete: row.is_complete !== false,
    }));
}

/** The parts that any of the columns has. */
export const partsIn = (columns: readonly Column[]): readonly string[] =>
  STEP_PARTS.filter((name) => columns.some(({ parts }) => parts.some(({ part, ns }) => part === name && ns > 0)));

function number(cell: Cell | undefined): Num {
  return typeof cell === "number" || typeof cell === "bigint" ? cell : 0;
}
