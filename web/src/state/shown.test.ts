import { expect, test } from "vitest";
import { shownSpan, stepMarks } from "./shown";

const step = (rank: number, number: number, start_ns: number, end_ns: number) =>
  ({ rank, number, start_ns, end_ns, source: "label", is_complete: true }) as const;
const RUN = { span: { start_ns: 0, end_ns: 100 } };
const STEPS = [step(0, 1, 10, 30), step(0, 2, 30, 60)];

test("charts show what was chosen, else everything", () => {
  const shown = (step?: string, window?: [string, string]) =>
    shownSpan(RUN, STEPS, { step, window: window ? { start_ns: window[0], end_ns: window[1] } : null });
  expect(shown()).toEqual({ start_ns: 0, end_ns: 100 });
  expect(shown("2")).toEqual({ start_ns: 30, end_ns: 60 });
  expect(shown(undefined, ["20", "50"])).toEqual({ start_ns: 20, end_ns: 50 });
  expect(shown("1", ["20", "50"])).toEqual({ start_ns: 20, end_ns: 30 });
  expect(shown("2", ["70", "80"])).toEqual({ start_ns: 0, end_ns: 100 });
  expect(shown("9")).toEqual({ start_ns: 0, end_ns: 100 });
  expect(shownSpan({ span: null }, [], { step: undefined, window: null }).end_ns).toBeGreaterThan(0);
});

test("marks are the steps of one rank", () => {
  expect(stepMarks([step(1, 1, 5, 9)])).toEqual([{ start_ns: 5, end_ns: 9, words: "step 1" }]);
  expect(stepMarks([{ ...step(0, 0, 0, 100), source: "whole" }])).toEqual([]);
  expect(stepMarks(STEPS).map((mark) => mark.words)).toEqual(["step 1", "step 2"]);
});
