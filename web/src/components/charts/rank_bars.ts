// Rows of ranks as bars side by side. There may be more ranks than pixels: then a bar stands for several ranks that
// follow each other, and shows the one of them that stands out. Nothing is averaged, so no rank that stands out is hidden.

import type { Cell, Num, Row } from "../../api/types";

/** A part of a bar: how it looks, and the column that it is as high as. */
export type PartColumn = readonly [part: string, column: string];

/** One rank, or one rank of a process group. */
export interface RankBar {
  readonly rank: string;
  readonly row: Row;
  /** Parts from the axis upwards, and downwards. */
  readonly up: readonly PartValue[];
  readonly down: readonly PartValue[];
  /** What bars are ordered by, and what stands out. */
  readonly value: number;
}

export interface PartValue {
  readonly part: string;
  readonly ns: Num;
}

/** What is drawn side by side: a bar, and the bars that it stands for. */
export interface Place {
  readonly shown: RankBar;
  readonly first: RankBar;
  readonly last: RankBar;
  readonly count: number;
}

/** Ways to order bars: by rank, or the largest sum of some columns first. */
export type Order = "rank" | readonly string[];

/** The bars of `rows` in an order. In the order of ranks, `standing` says which columns make a bar stand out. */
export function barsOf(
  rows: readonly Row[],
  up: readonly PartColumn[],
  down: readonly PartColumn[],
  order: Order,
  standing: readonly string[],
): RankBar[] {
  const columns = order === "rank" ? standing : order;
  const valuesOf = (row: Row, parts: readonly PartColumn[]) =>
    parts.map(([part, column]) => ({ part, ns: number(row[column]) }));
  const bars = rows.map((row) => ({
    rank: String(row.rank),
    row,
    up: valuesOf(row, up),
    down: valuesOf(row, down),
    value: columns.reduce((sum, column) => sum + Number(number(row[column])), 0),
  }));
  const byRank = (a: RankBar, b: RankBar) => Number(a.rank) - Number(b.rank);
  return bars.sort(order === "rank" ? byRank : (a, b) => b.value - a.value || byRank(a, b));
}

/**
 * Rows of one value for each rank, group and part, as one row for each rank and group, with the value of each part in the
 * column of its name.
 */
export function joined(rows: readonly Row[], part: string, value: string): Row[] {
  const joined = new Map<string, Record<string, Cell>>();
  for (const row of rows) {
    const key = JSON.stringify([String(row.rank), row.group ?? null]);
    const { rank = null, group = null, group_description = null } = row;
    const whole = joined.get(key) ?? { rank, group, group_description };
    whole[String(row[part])] = row[value] ?? null;
    joined.set(key, whole);
  }
  return [...joined.values()];
}

/** At most `most` places for the bars. Each stands for as many bars as the others, but for the last one, which may have fewer. */
export function placesOf(bars: readonly RankBar[], most: number): Place[] {
  const each = Math.max(1, Math.ceil(bars.length / Math.max(1, Math.floor(most))));
  const places: Place[] = [];
  for (let from = 0; from < bars.length; from += each) {
    const own = bars.slice(from, from + each);
    const [first] = own;
    const last = own[own.length - 1];
    if (!first || !last) continue;
    const shown = own.reduce((most, bar) => (bar.value > most.value ? bar : most), first);
    places.push({ shown, first, last, count: own.length });
  }
  return places;
}

/** The highest bar above the axis and below it. */
export function reachOf(bars: readonly RankBar[]): readonly [up: number, down: number] {
  const sum = (parts: readonly PartValue[]) => parts.reduce((sum, { ns }) => sum + Number(ns), 0);
  return bars.reduce(
    ([up, down], bar): [number, number] => [Math.max(up, sum(bar.up)), Math.max(down, sum(bar.down))],
    [0, 0] as [number, number],
  );
}

/** The parts that any bar has. */
export const partsOf = (bars: readonly RankBar[], parts: readonly PartColumn[]): string[] => {
  const has = new Set(
    bars.flatMap((bar) => [...bar.up, ...bar.down].flatMap(({ part, ns }) => (ns > 0 ? [part] : []))),
  );
  return parts.map(([part]) => part).filter((part) => has.has(part));
};

/** More kinds of process groups than this are no choice. */
const MOST_KINDS = 50;

/** What a process group is for, or else its name. */
export const kindOf = (row: Row): string => String(row.group_description ?? row.group ?? "");

/** The kinds of groups to choose from; none where there is one, or where there are too many. */
export function kindsOf(rows: readonly Row[]): string[] {
  const kinds = [...new Set(rows.map(kindOf))].sort();
  return kinds.length > 1 && kinds.length <= MOST_KINDS ? kinds : [];
}

function number(cell: Cell | undefined): Num {
  return typeof cell === "number" || typeof cell === "bigint" ? cell : 0;
}
