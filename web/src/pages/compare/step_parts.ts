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

/** The change of a name, in the class that its time belongs to. */
export interface Change {
  readonly class: string;
  /** Null where its time has no name. */
  readonly name: string | null;
  readonly ns: Num;
}

/** The largest changes of names of any class, and all others together: they sum to the difference of the steps. */
export interface Largest {
  readonly first: readonly Change[];
  readonly others: { readonly count: number; readonly ns: Num } | null;
}

/** The `most` largest changes of names. What did not change is none. */
export function largestOf({ classes }: StepParts, most: number): Largest {
  const all = classes.flatMap(({ name, row, parts }) =>
    // A class without parts is explained by nothing but itself.
    (parts.length > 0 ? parts : [row]).map(
      (part): Change => ({
        class: name,
        name: typeof part.name === "string" ? part.name : null,
        ns: part.change_ns as Num,
      }),
    ),
  );
  const changed = all.filter(({ ns }) => Number(ns) !== 0);
  changed.sort((one, other) => Math.abs(Number(other.ns)) - Math.abs(Number(one.ns)));
  const rest = changed.slice(most);
  if (rest.length === 0) return { first: changed, others: null };
  const ns = rest.reduce((sum, each) => sum + BigInt(each.ns), 0n);
  return { first: changed.slice(0, most), others: { count: rest.length, ns } };
}
