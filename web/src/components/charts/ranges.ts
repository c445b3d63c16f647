// Rows of `kernel_durations`, or of two runs' durations, as the columns of a histogram: ranges without a run are columns, too.

import type { Num, Row } from "../../api/types";

/** One column: the runs that took from `from_ns` up to, and without, `to_ns`. */
export interface Range {
  readonly from_ns: number;
  readonly to_ns: number;
  readonly count: Num;
}

/** The first duration beyond the range that begins here: powers of two are cut into four, as the analysis cuts them. */
export function endOf(from_ns: number): number {
  const width = from_ns < 8 ? 1 : 2 ** (Math.floor(Math.log2(from_ns)) - 2);
  return from_ns + width;
}

/** Every range from the shortest run to the longest. Rows come in any order. */
export function rangesOf(rows: readonly Row[]): Range[] {
  const counts = new Map(rows.map((row) => [Number(row.from_ns), row.count as Num]));
  const starts = [...counts.keys()];
  const [first, last] = [Math.min(...starts), Math.max(...starts)];
  const ranges: Range[] = [];
  for (let from_ns = first; from_ns <= last; from_ns = endOf(from_ns)) {
    ranges.push({ from_ns, to_ns: endOf(from_ns), count: counts.get(from_ns) ?? 0 });
  }
  return ranges;
}

/** One column of two runs. */
export interface PairRange {
  readonly from_ns: number;
  readonly to_ns: number;
  readonly a: Num;
  readonly b: Num;
}

/** The same for two runs, whose counts stand in `a_count` and `b_count`. */
export function pairsOf(rows: readonly Row[]): PairRange[] {
  const known = new Map(rows.map((row) => [Number(row.from_ns), row]));
  const count = (from_ns: number, name: string) => (known.get(from_ns)?.[name] ?? 0) as Num;
  const ranges = rangesOf(rows.map((row) => ({ ...row, count: 0 })));
  return ranges.map(({ from_ns, to_ns }) => ({
    from_ns,
    to_ns,
    a: count(from_ns, "a_count"),
    b: count(from_ns, "b_count"),
  }));
}
