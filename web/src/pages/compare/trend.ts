// The mean steps of all runs that are open, in their order.

import type { ErrorBody, Num, Row } from "../../api/types";
import type { Column } from "../../components/charts/StackedColumns";
import { STEP_PARTS } from "../../components/charts/steps";

/** What is known of a run's mean step. */
export type MeanOfRun =
  | { readonly state: "loading" | "none" }
  | { readonly state: "failed"; readonly error: ErrorBody }
  | { readonly state: "ready"; readonly total_ns: Num; readonly parts: ReadonlyMap<string, Num> };

/** The mean step of a run, from rows of `step_breakdown` that compare it with itself. */
export function meanOf(rows: readonly Row[]): MeanOfRun {
  const total = rows.find(({ row }) => row === "total")?.a_ns;
  if (typeof total !== "number" && typeof total !== "bigint") return { state: "none" };
  const classes = rows.filter(({ row }) => row === "class");
  return {
    state: "ready",
    total_ns: total,
    parts: new Map(classes.map((row) => [String(row.class), row.a_ns as Num])),
  };
}

/** A run of the trend. */
export interface TrendRow {
  readonly id: number;
  readonly key: string;
  readonly name: string;
  readonly mean: MeanOfRun;
  /** Less the mean step of the run before it that has one; null for the first. */
  readonly change_ns: Num | null;
  readonly change_ratio: number | null;
}

/** The runs in their order, each with its change from the one before. */
export function trendOf(
  runs: readonly { readonly id: number; readonly key: string; readonly name: string }[],
  means: ReadonlyMap<number, MeanOfRun>,
): TrendRow[] {
  let before: Num | null = null;
  return runs.map(({ id, key, name }) => {
    const mean = means.get(id) ?? { state: "loading" };
    if (mean.state !== "ready") return { id, key, name, mean, change_ns: null, change_ratio: null };
    const change_ns = before === null ? null : BigInt(mean.total_ns) - BigInt(before);
    const change_ratio = change_ns === null || Number(before) === 0 ? null : Number(change_ns) / Number(before);
    before = mean.total_ns;
    return { id, key, name, mean, change_ns, change_ratio };
  });
}

/** The runs that have a mean step as columns, numbered as in the table. `chosen` are the keys of those that are compared. */
export function trendColumns(rows: readonly TrendRow[], chosen: readonly string[]): Column[] {
  return rows.flatMap(({ key, name, mean }, at) => {
    if (mean.state !== "ready") return [];
    return {
      key,
      label: String(at + 1),
      title: `run ${at + 1}, ${name}`,
      total_ns: mean.total_ns,
      parts: STEP_PARTS.map((part) => ({ part, ns: mean.parts.get(part) ?? 0 })),
      isChosen: chosen.includes(key),
      isComplete: true,
    };
  });
}
