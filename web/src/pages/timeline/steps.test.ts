import { effect } from "@preact/signals";
import { expect, test } from "vitest";
import type { StepOfRun } from "../../api/types";
import { Steps } from "./steps";

const step = (rank: number, number: number, start_ns: number): StepOfRun => ({
  rank,
  number,
  start_ns,
  end_ns: start_ns + 5,
  is_complete: true,
  source: "label",
});
const ALL = [step(0, 1, 10), step(0, 2, 20), step(3, 2, 21), step(3, 4, 41)];

/** Steps, and what was asked for them. */
function stepsOf(fails = false) {
  const asked: unknown[] = [];
  const ask = async (of: { rank?: number; step?: string }) => {
    asked.push(of);
    if (fails) throw new Error("no server");
    const isWanted = ({ rank, number }: StepOfRun) =>
      (of.rank ?? rank) === rank && (of.step ?? String(number)) === String(number);
    return ALL.filter(isWanted);
  };
  return { steps: new Steps(ask, new AbortController().signal), asked };
}
const answered = () => new Promise((resolve) => setTimeout(resolve));

test("the steps of a rank are asked for once, and told when they are there", async () => {
  const { steps, asked } = stepsOf();
  const told: unknown[] = [];
  const stop = effect(() => {
    told.push(steps.ofRank(3)?.length);
  });
  expect(steps.find(3, "4")).toBeUndefined();
  await answered();
  stop();
  expect([told, asked]).toEqual([[undefined, 2], [{ rank: 3 }]]);
  expect(steps.find(3, "4")).toEqual({ start_ns: 41, end_ns: 46 });
  expect(steps.find(3, "1")).toBeNull();
});

test("without a rank a step is that of the first rank that has it", async () => {
  const { steps, asked } = stepsOf();
  steps.find(null, "2");
  steps.find(null, "9");
  await answered();
  expect([steps.find(null, "2"), steps.find(null, "9")]).toEqual([{ start_ns: 20, end_ns: 25 }, null]);
  expect(steps.find(null, "no number")).toBeNull();
  expect(asked).toEqual([{ step: "2" }, { step: "9" }]);
});

test("steps that are loaded first are there at once; without an answer none are", async () => {
  const { steps, asked } = stepsOf();
  await steps.load({ rank: 0 });
  expect(steps.ofRank(0)?.map(({ number }) => number)).toEqual([1, 2]);
  expect(asked).toEqual([{ rank: 0 }]);
  const failing = stepsOf(true).steps;
  await expect(failing.load({ rank: 0 })).rejects.toThrow("no server");
  expect(failing.ofRank(3)).toBeUndefined();
  await answered();
  expect(failing.ofRank(3)).toBeUndefined();
});
