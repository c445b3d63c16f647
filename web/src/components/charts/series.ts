// Rows of a curve as the columns that a chart over time draws. Numbers become doubles here, for pixels only; what is
// read off the chart is the row itself.

import type { Cell, Row } from "../../api/types";

/** A stretch of time. */
export interface Stretch {
  readonly start_ns: number;
  readonly end_ns: number;
}

/** Times, and for each series its values; `null` where nothing is known. */
export type Columns = [number[], ...(number | null)[][]];

/** The columns of `rows`, each row holding until the next, and the last one until `end_ns`. Rows come by time. */
export function columnsOf(rows: readonly Row[], time: string, names: readonly string[], end_ns: number): Columns {
  const times = rows.map((row) => Number(row[time]));
  const values = names.map((name) => rows.map((row) => pixel(row[name])));
  const last = times[times.length - 1];
  if (last !== undefined && end_ns > last) {
    times.push(end_ns);
    for (const column of values) column.push(column[column.length - 1] ?? null);
  }
  return [times, ...values];
}

const pixel = (cell: Cell | undefined): number | null =>
  typeof cell === "number" || typeof cell === "bigint" ? Number(cell) : null;

/** The place of the row that holds at a moment: the last one that begins no later; -1 before all. Rows come by time. */
export function indexAt(rows: readonly Row[], time: string, at_ns: number): number {
  let [from, to] = [0, rows.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (Number(rows[middle]?.[time]) <= at_ns) from = middle + 1;
    else to = middle;
  }
  return from - 1;
}

/** A dragged stretch in whole ns within the chart; `null` for one without length. */
export function dragged(from_ns: number, to_ns: number, within: Stretch): Stretch | null {
  const clamp = (ns: number) => Math.min(Math.max(Math.round(ns), within.start_ns), within.end_ns);
  const [start_ns, end_ns] = [clamp(Math.min(from_ns, to_ns)), clamp(Math.max(from_ns, to_ns))];
  return end_ns > start_ns ? { start_ns, end_ns } : null;
}

/** Distances of marks on an axis of time: whole numbers of their unit. */
export const NS_STEPS: number[] = Array.from({ length: 16 }, (_, at) =>
  [1, 2, 5].map((step) => step * 10 ** at),
).flat();

/** Distances of marks on an axis of bytes: powers of two, so that they are round in KiB, MiB and GiB. */
export const BYTE_STEPS: number[] = Array.from({ length: 53 }, (_, at) => 2 ** at);
