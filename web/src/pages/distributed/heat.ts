// Rows of `step_breakdown` as a map: ranks below each other, steps side by side, darker where a step took longer.

import type { Cell, Num, Row } from "../../api/types";

/** Number of shades: more would look alike. */
export const SHADES = 7;

/** What shades compare: all steps on the map, or the ranks within each step. */
export type Against = "all" | "step";

/** One step of one rank. */
export interface HeatCell {
  readonly rank: string;
  readonly step: string;
  readonly total_ns: Num;
  readonly start_ns: Num;
  readonly isComplete: boolean;
  /** 0 for the shortest, `SHADES - 1` for the longest; null for a step that recording cut, which compares with nothing. */
  readonly shade: number | null;
}

/** The map, a row for each rank and a place for each step. */
export interface Heat {
  readonly cells: readonly (readonly (HeatCell | null)[])[];
  /** The shortest and the longest complete step on it; null without one. */
  readonly range: readonly [shortest: Num, longest: Num] | null;
}

/** The map of `rows`. Of several steps with one number on a rank, as after a restart, it has the longest. */
export function heatOf(
  rows: readonly Row[],
  ranks: readonly string[],
  steps: readonly string[],
  against: Against,
): Heat {
  const known = new Map<string, Row>();
  for (const row of rows) {
    if (row.step === null || row.step === undefined) continue;
    const key = `${row.rank} ${row.step}`;
    const before = known.get(key);
    if (!before || number(before.total_ns) < number(row.total_ns)) known.set(key, row);
  }
  const rowAt = (rank: string, step: string) => known.get(`${rank} ${step}`);
  const rangeOf = (ranks: readonly string[], steps: readonly string[]) =>
    limits(ranks.flatMap((rank) => steps.map((step) => rowAt(rank, step))));
  const range = rangeOf(ranks, steps);
  const ranges = steps.map((step) => (against === "all" ? range : rangeOf(ranks, [step])));
  const cells = ranks.map((rank) =>
    steps.map((step, at) => {
      const row = rowAt(rank, step);
      if (!row) return null;
      const [total_ns, isComplete] = [number(row.total_ns), row.is_complete !== false];
      const within = ranges[at];
      const shade = isComplete && within ? shadeOf(total_ns, within) : null;
      return { rank, step, total_ns, start_ns: number(row.start_ns), isComplete, shade };
    }),
  );
  return { cells, range };
}

/**
 * Where the part of `all` things begins that is shown: at the place that was asked for, else at the part that has the place
 * `wanted` in it; -1 for none.
 */
export function firstShown(all: number, size: number, from: string | undefined, wanted: number): number {
  const asked = /^\d{1,9}$/.test(from ?? "") ? Number(from) : Math.max(0, wanted);
  return from === undefined ? asked - (asked % size) : Math.min(asked, Math.max(0, all - 1));
}

function limits(rows: readonly (Row | undefined)[]): readonly [Num, Num] | null {
  const times = rows.flatMap((row) => (row && row.is_complete !== false ? [number(row.total_ns)] : []));
  // Not by Math.min, which takes no bigint.
  times.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const [low, high] = [times[0], times[times.length - 1]];
  return low === undefined || high === undefined ? null : [low, high];
}

function shadeOf(ns: Num, [low, high]: readonly [Num, Num]): number {
  if (low >= high) return 0;
  const share = (Number(ns) - Number(low)) / (Number(high) - Number(low));
  return Math.min(SHADES - 1, Math.floor(share * SHADES));
}

function number(cell: Cell | undefined): Num {
  return typeof cell === "number" || typeof cell === "bigint" ? cell : 0;
}
