// Rows of durations as the columns of a histogram. A range in which nothing lies is no row and no column, but room.

import type { Num, Row } from "../../api/types";

/** A stretch of durations: from `from_ns` up to, and without, `to_ns`. */
export interface Stretch {
  readonly from_ns: number;
  readonly to_ns: number;
}

/** One column: how many lie in a range. */
export interface Range extends Stretch {
  readonly count: Num;
}

/** One column of two runs. */
export interface PairRange extends Stretch {
  readonly a: Num;
  readonly b: Num;
}

const stretchOf = (row: Row): Stretch => ({ from_ns: Number(row.from_ns), to_ns: Number(row.to_ns) });
const byStart = (a: Stretch, b: Stretch) => a.from_ns - b.from_ns;

/** The ranges of one run, the shortest first. Rows come in any order. */
export const rangesOf = (rows: readonly Row[]): Range[] =>
  rows.map((row) => ({ ...stretchOf(row), count: row.count as Num })).sort(byStart);

/** The same for two runs, whose counts stand in `a_count` and `b_count`. */
export const pairsOf = (rows: readonly Row[]): PairRange[] =>
  rows.map((row) => ({ ...stretchOf(row), a: row.a_count as Num, b: row.b_count as Num })).sort(byStart);

/** Where durations stand on an axis from 0 to 1. */
export interface Axis {
  /** True when equal distances are equal factors, not equal times. */
  readonly isLogarithmic: boolean;
  readonly at: (ns: number) => number;
}

/**
 * The axis on which ranges are as wide as they are: of equal times where all ranges are equally wide, else, as ranges that
 * grow with what they hold need it, of equal factors.
 */
export function axisOf(ranges: readonly Stretch[]): Axis {
  const widths = ranges.map(({ from_ns, to_ns }) => to_ns - from_ns);
  const isLogarithmic = Math.max(...widths) > Math.min(...widths) + 1;
  // Nothing is left of a nanosecond on an axis of factors.
  const place = (ns: number) => (isLogarithmic ? Math.log2(Math.max(ns, 0.5)) : ns);
  const from = place(Math.min(...ranges.map(({ from_ns }) => from_ns)));
  const to = place(Math.max(...ranges.map(({ to_ns }) => to_ns)));
  return { isLogarithmic, at: (ns) => (place(ns) - from) / Math.max(to - from, Number.MIN_VALUE) };
}
