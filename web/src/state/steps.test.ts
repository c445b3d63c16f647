import { expect, test } from "vitest";
import { countOfNumbers, numbersFrom, placeOfNumber, stepsPath } from "./steps";

const STEPS = {
  numbers: [
    [-1, 2],
    [7, 7],
    [9_007_199_254_740_993n, 9_007_199_254_740_994n],
  ],
} as const;
const ALL = ["-1", "0", "1", "2", "7", "9007199254740993", "9007199254740994"];

test("ranges stand for the numbers in them, with all their digits", () => {
  expect(countOfNumbers(STEPS)).toBe(ALL.length);
  expect(numbersFrom(STEPS, 0, 100)).toEqual(ALL);
  ALL.forEach((number, at) => {
    expect(placeOfNumber(STEPS, number)).toBe(at);
    expect(numbersFrom(STEPS, at, 2)).toEqual(ALL.slice(at, at + 2));
  });
  for (const other of ["3", "6", "8", "x", "1.5", undefined]) expect(placeOfNumber(STEPS, other)).toBe(-1);
});

test("of very many numbers only those that are wanted are made", () => {
  const many = { numbers: [[0, 4_000_000_000]] } as const;
  expect(countOfNumbers(many)).toBe(4_000_000_001);
  expect(numbersFrom(many, 3_999_999_999, 100)).toEqual(["3999999999", "4000000000"]);
});

test("steps are asked for by rank, by number, or by both", () => {
  expect(stepsPath(3, { rank: 5 })).toBe("api/runs/3/steps?rank=5");
  expect(stepsPath(0, { step: "7" })).toBe("api/runs/0/steps?step=7");
  expect(stepsPath(0, { rank: "1", step: "-7" })).toBe("api/runs/0/steps?rank=1&step=-7");
});
