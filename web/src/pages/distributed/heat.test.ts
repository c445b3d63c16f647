import { expect, test } from "vitest";
import type { Row } from "../../api/types";
import { firstShown, heatOf, SHADES } from "./heat";

const row = (
  rank: number,
  step: number | null,
  total_ns: number | bigint,
  is_complete: boolean | null = true,
): Row => ({
  rank,
  step,
  start_ns: step === null ? null : step * 100,
  total_ns,
  is_complete,
});
const ROWS = [
  row(0, 0, 900, false),
  row(0, 1, 10),
  row(0, 2, 80),
  row(0, null, 45, null),
  row(1, 1, 12),
  row(1, 2, 40),
];
const shades = (against: "all" | "step") =>
  heatOf(ROWS, ["0", "1", "2"], ["0", "1", "2"], against).cells.map((cells) => cells.map((cell) => cell?.shade));

test("what took longest is darkest; what recording cut compares with nothing", () => {
  expect(shades("all")).toEqual([
    [null, 0, SHADES - 1],
    [undefined, 0, Math.floor((30 / 70) * SHADES)],
    [undefined, undefined, undefined],
  ]);
  expect(heatOf(ROWS, ["0", "1"], ["0", "1", "2"], "all").range).toEqual([10, 80]);
});

test("within a step ranks are compared with each other", () => {
  expect(shades("step")).toEqual([
    [null, 0, SHADES - 1],
    [undefined, SHADES - 1, 0],
    [undefined, undefined, undefined],
  ]);
});

test("steps that are equally long are light, and averages are no steps", () => {
  const heat = heatOf([row(0, 1, 10), row(1, 1, 10), row(1, null, 99, null)], ["0", "1"], ["1"], "all");
  expect(heat.cells.flat().map((cell) => cell?.shade)).toEqual([0, 0]);
  expect(heatOf([row(0, 1, 10, false)], ["0"], ["1"], "all").range).toBeNull();
});

test("of steps with the same number the longest is shown, with all its digits", () => {
  const long = 9_007_199_254_740_993n;
  const heat = heatOf([row(0, 1, 5), row(0, 1, long), row(0, 1, 7)], ["0"], ["1"], "all");
  expect(heat.cells[0]?.[0]?.total_ns).toBe(long);
});

test("the part that is shown begins where it was asked for, else where what was chosen is", () => {
  expect([firstShown(512, 64, undefined, -1), firstShown(512, 64, undefined, 130)]).toEqual([0, 128]);
  expect([firstShown(512, 64, "70", 130), firstShown(512, 64, "9999", 0), firstShown(0, 64, "5", -1)]).toEqual([
    70, 511, 0,
  ]);
  expect([firstShown(25, 10, "x", -1), firstShown(0, 10, undefined, -1)]).toEqual([0, 0]);
});
