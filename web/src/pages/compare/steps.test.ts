import { expect, test } from "vitest";
import type { StepOfRun } from "../../api/types";
import { firstView, originOf, stepAt } from "./steps";

const step = (rank: number, number: number, start_ns: number, end_ns: number, is_complete = true): StepOfRun => ({
  rank,
  number,
  start_ns,
  end_ns,
  is_complete,
  source: "label",
});
const STEPS = [step(2, 0, 0, 50, false), step(2, 1, 100, 300), step(2, 2, 300, 500)];

test("the step is the one with the number, the first complete one unasked", () => {
  expect([stepAt(STEPS, undefined), stepAt(STEPS, "2"), stepAt(STEPS, "7"), stepAt([], "0")]).toEqual([
    STEPS[1],
    STEPS[2],
    STEPS[1],
    null,
  ]);
  expect(stepAt([step(0, 4, 0, 1, false)], undefined)?.number).toBe(4);
});

test("timelines begin where their steps do, and show the longer one", () => {
  const spans = [
    { start_ns: 20, end_ns: 1020 },
    { start_ns: 0, end_ns: 9000 },
  ] as const;
  expect(firstView([STEPS[1] ?? null, step(0, 0, 7000, 7100)], spans)).toEqual({ start_ns: -4, end_ns: 204 });
  expect(firstView([null, null], spans)).toEqual({ start_ns: -180, end_ns: 9180 });
  expect([originOf(STEPS[1] ?? null, spans[0]), originOf(null, spans[0])]).toEqual([100, 20]);
});
