import { expect, test } from "vitest";
import { type MeanOfRun, meanOf, trendColumns, trendOf } from "./trend";

const runs = ["one", "two", "three", "four"].map((name, id) => ({ id, key: `${name}-00`, name }));
const mean = (kernel: number, cpu: number): MeanOfRun =>
  meanOf([
    { row: "class", class: "kernel", name: null, a_ns: kernel },
    { row: "part", class: "kernel", name: "gemm", a_ns: kernel },
    { row: "class", class: "cpu", name: null, a_ns: cpu },
    { row: "total", class: "total", name: null, a_ns: kernel + cpu },
  ]);

test("each run is told beside the one before it that has steps", () => {
  const none = meanOf([{ row: "total", class: "total", name: null, a_ns: null }]);
  expect(none).toEqual({ state: "none" });
  const rows = trendOf(
    runs,
    new Map([
      [0, mean(10, 30)],
      [1, none],
      [2, mean(20, 30)],
    ]),
  );
  expect(rows.map(({ name, mean, change_ns, change_ratio }) => [name, mean.state, change_ns, change_ratio])).toEqual([
    ["one", "ready", null, null],
    ["two", "none", null, null],
    ["three", "ready", 10n, 0.25],
    ["four", "loading", null, null],
  ]);
  const columns = trendColumns(rows, ["three-00"]);
  expect(columns.map(({ label, total_ns, isChosen }) => [label, total_ns, isChosen])).toEqual([
    ["1", 40, false],
    ["3", 50, true],
  ]);
  for (const { parts, total_ns } of columns) {
    expect(parts.reduce((sum, { ns }) => sum + Number(ns), 0)).toBe(total_ns);
  }
});
