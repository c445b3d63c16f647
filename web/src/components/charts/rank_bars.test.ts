import { expect, test } from "vitest";
import type { Row } from "../../api/types";
import { barsOf, joined, kindsOf, partsOf, placesOf, reachOf } from "./rank_bars";

const UP = [
  ["compute", "compute_ns"],
  ["neither", "other_ns"],
] as const;
const DOWN = [["held_up", "held_up_ns"]] as const;
const row = (rank: number, compute_ns: number | bigint, other_ns: number, held_up_ns = 0): Row => ({
  rank,
  compute_ns,
  other_ns,
  held_up_ns,
});
const ROWS = [row(10, 5, 1), row(2, 7, 0, 9), row(0, 5, 4)];
const ranks = (bars: readonly { rank: string }[]) => bars.map((bar) => bar.rank);

test("bars are ordered by number of the rank, or the largest first", () => {
  expect(ranks(barsOf(ROWS, UP, DOWN, "rank", ["compute_ns"]))).toEqual(["0", "2", "10"]);
  expect(ranks(barsOf(ROWS, UP, DOWN, ["compute_ns"], []))).toEqual(["2", "0", "10"]);
  expect(ranks(barsOf(ROWS, UP, DOWN, ["compute_ns", "other_ns"], []))).toEqual(["0", "2", "10"]);
  expect(ranks(barsOf(ROWS, UP, DOWN, ["held_up_ns"], []))).toEqual(["2", "0", "10"]);
});

test("the highest bar and the parts that are there are found", () => {
  const bars = barsOf(ROWS, UP, DOWN, "rank", ["compute_ns"]);
  expect(reachOf(bars)).toEqual([9, 9]);
  expect(partsOf(bars, [...UP, ...DOWN])).toEqual(["compute", "neither", "held_up"]);
  expect(partsOf(bars.slice(0, 1), [...UP, ...DOWN])).toEqual(["compute", "neither"]);
});

test("where ranks share a place, each rank is in one place, and the one that stands out is shown", () => {
  const rows = Array.from({ length: 4096 }, (_, rank) => row(rank, rank === 1234 ? 900n : 100 + (rank % 7), 1));
  const bars = barsOf(rows, UP, DOWN, "rank", ["compute_ns"]);
  for (const most of [1, 3, 700, 4095, 4096, 9999]) {
    const places = placesOf(bars, most);
    expect(places.length).toBeLessThanOrEqual(most);
    expect(places.reduce((sum, { count }) => sum + count, 0)).toBe(4096);
    expect(places.filter(({ shown }) => shown.rank === "1234")).toHaveLength(1);
    for (const { first, shown, last, count } of places) {
      expect(Number(last.rank) - Number(first.rank) + 1).toBe(count);
      const own = bars.slice(Number(first.rank), Number(last.rank) + 1);
      expect(shown.value).toBe(Math.max(...own.map(({ value }) => value)));
    }
  }
  expect(placesOf([], 5)).toEqual([]);
  expect(placesOf(bars, 0)).toHaveLength(1);
});

test("a few kinds of process groups can be chosen from, by what they are for", () => {
  const of = (group: string, group_description: string | null): Row => ({ rank: 0, group, group_description });
  expect(kindsOf([of("1", "tp"), of("2", "tp"), of("3", "dp"), of("4", null)])).toEqual(["4", "dp", "tp"]);
  expect(kindsOf([of("1", "tp"), of("2", "tp")])).toEqual([]);
  expect(kindsOf(Array.from({ length: 51 }, (_, group) => of(String(group), null)))).toEqual([]);
});

test("rows of one part each are one row for each rank and group, with every digit", () => {
  const of = (rank: number, group: string | null, cause: string, late_ns: number | bigint): Row => ({
    rank,
    group,
    group_description: "dp",
    cause,
    late_ns,
  });
  const long = 9_007_199_254_740_993n;
  const rows = [of(1, "0", "input", long), of(1, "0", "compute", 5), of(1, null, "input", 3), of(11, "0", "input", 2)];
  const description = { group_description: "dp" };
  expect(joined(rows, "cause", "late_ns")).toEqual([
    { rank: 1, group: "0", ...description, input: long, compute: 5 },
    { rank: 1, group: null, ...description, input: 3 },
    { rank: 11, group: "0", ...description, input: 2 },
  ]);
});
