import { expect, test } from "vitest";
import { columnsOf, STEP_PARTS } from "./steps";

const row = (rank: number, step: number | null, total_ns: number) => ({
  rank,
  step,
  start_ns: step === null ? null : step * 100,
  total_ns,
  ...Object.fromEntries(STEP_PARTS.map((part) => [`${part}_ns`, part === "kernel" ? total_ns : 0])),
  is_complete: step !== 2,
});
const ROWS = [row(0, 1, 10), row(0, 2, 20), row(0, null, 10), row(1, 1, 30), row(1, null, 30)];

test("steps are columns of their own, averages are not among them", () => {
  const columns = columnsOf(ROWS, "2");
  expect(columns.map(({ label, total_ns, isChosen, isComplete }) => [label, total_ns, isChosen, isComplete])).toEqual([
    ["1", 10, false, true],
    ["2", 20, true, false],
    ["1", 30, false, true],
  ]);
  expect(new Set(columns.map((column) => column.key)).size).toBe(3);
});
