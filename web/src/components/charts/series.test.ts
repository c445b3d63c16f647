import { expect, test } from "vitest";
import { axisLabels } from "../../canvas/ruler";
import { columnsOf, dragged, indexAt, NS_STEPS } from "./series";

const ROWS = [
  { time_ns: 10, a: 5, b: null },
  { time_ns: 20, a: 2n ** 60n, b: 7 },
];

test("rows become columns, and the last one holds until the end", () => {
  expect(columnsOf(ROWS, "time_ns", ["a", "b"], 50)).toEqual([
    [10, 20, 50],
    [5, 2 ** 60, 2 ** 60],
    [null, 7, 7],
  ]);
  expect(columnsOf(ROWS, "time_ns", ["b"], 20)).toEqual([
    [10, 20],
    [null, 7],
  ]);
  expect(columnsOf([], "time_ns", ["a"], 50)).toEqual([[], []]);
});

test("what is not known is no 0", () => {
  expect(columnsOf([{ time_ns: 1, a: null }], "time_ns", ["a"], 9)).toEqual([
    [1, 9],
    [null, null],
  ]);
});

test("the row at a moment is the last that has begun", () => {
  expect([9, 10, 19, 20, 99].map((at) => indexAt(ROWS, "time_ns", at))).toEqual([-1, 0, 0, 1, 1]);
  expect(indexAt([], "time_ns", 5)).toBe(-1);
});

test("a dragged stretch is whole, in order and inside", () => {
  const within = { start_ns: 0, end_ns: 100 };
  expect(dragged(20.4, 10.6, within)).toEqual({ start_ns: 11, end_ns: 20 });
  expect(dragged(-50, 1e9, within)).toEqual(within);
  expect([dragged(5, 5, within), dragged(200, 300, within)]).toEqual([null, null]);
});

test("marks on an axis of time say where they are", () => {
  const units: Record<string, number> = { ns: 1, µs: 1e3, ms: 1e6, s: 1e9, h: 3_600e9 };
  for (const step of NS_STEPS.filter((step) => step < 3_600e9)) {
    for (const at of [7 * step, 12_345 * step]) {
      const [number = "", unit = ""] = axisLabels([0, at], step)[1]?.split(" ") ?? [];
      expect(Number(number.replaceAll(",", "")) * (units[unit] ?? 0)).toBeCloseTo(at, 0);
    }
  }
  expect(axisLabels([11e9, 11.5e9, 12e9], 5e8)).toEqual(["11.0 s", "11.5 s", "12.0 s"]);
  expect(axisLabels([0, 5e8, 1e9], 5e8)).toEqual(["0 ms", "500 ms", "1,000 ms"]);
});
