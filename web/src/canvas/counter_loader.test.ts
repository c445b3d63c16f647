import { expect, test } from "vitest";
import { CounterLoader, windowFor } from "./counter_loader";
import { rangeOf, sampleAt } from "./draw/counters";
import type { CounterPart } from "./model";

const part = (row: number): CounterPart => ({ row, time_ns: [0], min: [1], max: [2], last: [1] });

test("a window holds what is shown and a tile to each side", () => {
  expect(windowFor({ start_ns: 1024, end_ns: 1500 }, 0)).toEqual({
    window: { start_ns: 512, end_ns: 2048 },
    points: 1536,
  });
  expect(windowFor({ start_ns: 0, end_ns: 512 * 100 }, 0).points).toBe(4096);
});

test("moving a little asks nothing, what is superseded is given up", async () => {
  const asked: { rows: readonly number[]; signal: AbortSignal }[] = [];
  const loader = new CounterLoader(
    async (rows, _window, _points, signal) => {
      asked.push({ rows, signal });
      return rows.map(part);
    },
    () => {},
    () => {},
  );
  loader.want([], { start_ns: 0, end_ns: 10 }, 0);
  expect(asked).toHaveLength(0);
  loader.want([1, 2], { start_ns: 0, end_ns: 300 }, 0);
  loader.want([1, 2], { start_ns: 20, end_ns: 320 }, 0);
  expect(asked).toHaveLength(1);
  loader.want([2], { start_ns: 5000, end_ns: 5300 }, 0);
  expect(asked.map(({ signal }) => signal.aborted)).toEqual([true, false]);
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect([...loader.parts.keys()]).toEqual([2]);
});

test("heights begin at 0, also of values far above it, and negative ones have room", () => {
  const view = { start_ns: 0, end_ns: 10 };
  expect(rangeOf({ ...part(1), min: [5], max: [9] }, view)).toEqual({ low: 0, high: 9 });
  expect(rangeOf({ ...part(1), min: [-5], max: [-1] }, view)).toEqual({ low: -5, high: 0 });
  expect(rangeOf({ ...part(1), min: [0], max: [0] }, view)).toEqual({ low: 0, high: 1 });
});

test("heights are of what is shown: the samples in the window, and the one that holds when it begins", () => {
  const values = [9, 2, 3, 8];
  const counter = { row: 1, time_ns: [0, 10, 20, 30], min: values, max: values, last: values };
  expect(rangeOf(counter, { start_ns: 12, end_ns: 25 }).high).toBe(3);
  expect(rangeOf(counter, { start_ns: 9, end_ns: 25 }).high).toBe(9);
  expect(rangeOf(counter, { start_ns: 12, end_ns: 30 }).high).toBe(8);
});

test("a sample holds until the next", () => {
  expect([-1, 0, 4, 5, 9, 100].map((time) => sampleAt([0, 5, 9], time))).toEqual([-1, 0, 0, 1, 2, 2]);
});
