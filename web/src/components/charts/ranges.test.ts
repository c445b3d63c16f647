import { expect, test } from "vitest";
import { axisOf, pairsOf, rangesOf } from "./ranges";

test("ranges are those of the analysis, the shortest first", () => {
  const rows = [
    { from_ns: 1280, to_ns: 1536, count: 2 },
    { from_ns: 896, to_ns: 1024, count: 5 },
  ];
  expect(rangesOf(rows)).toEqual([
    { from_ns: 896, to_ns: 1024, count: 5 },
    { from_ns: 1280, to_ns: 1536, count: 2 },
  ]);
  const pair = [{ name: "k", from_ns: 896, to_ns: 1024, a_count: 5, b_count: 1 }];
  expect(pairsOf(pair)).toEqual([{ from_ns: 896, to_ns: 1024, a: 5, b: 1 }]);
  expect([rangesOf([]), pairsOf([])]).toEqual([[], []]);
});

test("ranges of one width are drawn as wide, and what lies between has its room", () => {
  const { isLogarithmic, at } = axisOf([
    { from_ns: 100, to_ns: 110 },
    { from_ns: 130, to_ns: 140 },
  ]);
  expect(isLogarithmic).toBe(false);
  expect([100, 110, 130, 140].map(at)).toEqual([0, 0.25, 0.75, 1]);
});

test("ranges that grow stand on an axis of factors, where each is as wide as it is", () => {
  const edges = [262144, 327680, 393216, 458752, 524288, 655360, 786432, 917504, 1048576];
  const ranges = edges.slice(1).map((to_ns, at) => ({ from_ns: edges[at] as number, to_ns }));
  const { isLogarithmic, at } = axisOf(ranges);
  expect(isLogarithmic).toBe(true);
  expect([262144, 524288, 1048576].map(at)).toEqual([0, 0.5, 1]);
  for (const { from_ns, to_ns } of ranges)
    expect(at(to_ns) - at(from_ns)).toBeCloseTo(Math.log2(to_ns / from_ns) / 2, 9);
  expect(
    axisOf([
      { from_ns: 0, to_ns: 1 },
      { from_ns: 8, to_ns: 10 },
    ]).at(0),
  ).toBe(0);
});
