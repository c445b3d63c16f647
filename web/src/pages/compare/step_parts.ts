// The account of the difference of two mean steps, as rows that can be opened, and where their bars stand.

import type { Num, Row } from "../../api/types";

/** A class of the mean step, and what it consists of by name. */
export interface PartClass {
  readonly name: string;
  readonly row: Row;
  readonly parts: readonly Row[];
}

/** The mean step as a sum. */
export interface StepParts {
  /** Without those that are 0 in both runs. */
  readonly classes: readonly PartClass[];
  readonly total: Row;
}

/** Rows of `step_breakdown` as classes with their parts; null where one of the runs has no step. */
export function stepPartsOf(rows: readonly Row[]): StepParts | null {
  const total = rows.find(({ row }) => row === "total");
  if (!total || total.a_ns === null || total.b_ns === null) return null;
  const all = rows.filter(({ row }) => row === "class");
  const classes = all.filter((row) => row.a_ns !== 0 || row.b_ns !== 0);
  const partsOf = (row: Row) => rows.filter((part) => part.row === "part" && part.class === row.class);
  return { classes: classes.map((row) => ({ name: String(row.class), row, parts: partsOf(row) })), total };
}

/** A bar from where one sum ends to where the next does. */
export interface Bar {
  readonly from: number;
  readonly to: number;
}

/** The bars of changes that follow each other: each begins where the one before it ends. */
export function following(rows: readonly Row[], begin: number): Bar[] {
  let end = begin;
  return rows.map((row) => {
    const from = end;
    end += Number(row.change_ns);
    return { from, to: end };
  });
}

/** From the least to the largest of 0 and all ends of bars. */
export function reachOf(bars: readonly Bar[]): Bar {
  const ends = bars.flatMap(({ from, to }) => [from, to]);
  return { from: Math.min(0, ...ends), to: Math.max(0, ...ends) };
}

/** Milliseconds with all of their digits: down to the microsecond, and the rest. */
export function exactMilliseconds(ns: Num): readonly [text: string, rest: string] {
  const digits = String(ns < 0 ? -ns : ns).padStart(7, "0");
  const sign = ns < 0 ? "-" : "";
  return [`${sign}${digits.slice(0, -6)}.${digits.slice(-6, -3)}`, digits.slice(-3)];
}
