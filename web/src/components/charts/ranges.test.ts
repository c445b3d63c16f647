import { expect, test } from "vitest";
import { endOf, pairsOf, rangesOf } from "./ranges";

test("ranges between runs are there, with no run", () => {
  const rows = [
    { from_ns: 1280, to_ns: 1536, count: 2 },
    { from_ns: 896, to_ns: 1024, count: 5 },
  ];
  expect(rangesOf(rows)).toEqual([
    { from_ns: 896, to_ns: 1024, count: 5 },
    { from_ns: 1024, to_ns: 1280, count: 0 },
    { from_ns: 1280, to_ns: 1536, count: 2 },
  ]);
  expect(rangesOf([])).toEqual([]);
});

test("ranges end where those of the analysis do", () => {
  expect([0, 1, 4, 7, 8, 10, 14, 16, 2560].map(endOf)).toEqual([1, 2, 5, 8, 10, 12, 16, 20, 3072]);
  let from_ns = 8;
  while (from_ns < 2 ** 52) {
    const to_ns = endOf(from_ns);
    expect(Number.isInteger(Math.log2(to_ns - from_ns))).toBe(true);
    from_ns = to_ns;
  }
});

test("ranges of two runs are those of either", () => {
  const rows = [
    { name: "k", from_ns: 1280, to_ns: 1536, a_count: 0, b_count: 2 },
    { name: "k", from_ns: 896, to_ns: 1024, a_count: 5, b_count: 1 },
  ];
  expect(pairsOf(rows)).toEqual([
    { from_ns: 896, to_ns: 1024, a: 5, b: 1 },
    { from_ns: 1024, to_ns: 1280, a: 0, b: 0 },
    { from_ns: 1280, to_ns: 1536, a: 0, b: 2 },
  ]);
  expect(pairsOf([])).toEqual([]);
});
