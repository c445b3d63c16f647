import { expect, test } from "vitest";
import { labelEvery, ticks } from "./scale";

test("ticks are round, begin at 0 and reach the top", () => {
  expect(ticks(95, 4)).toEqual([0, 50, 100]);
  expect(ticks(1_000_000, 5)).toEqual([0, 200_000, 400_000, 600_000, 800_000, 1_000_000]);
  for (let most = 1; most < 1e12; most *= 1.37) {
    const values = ticks(most, 4);
    const top = values[values.length - 1] ?? 0;
    expect(values[0]).toBe(0);
    expect(top).toBeGreaterThanOrEqual(most * (1 - 1e-9));
    expect(values.length).toBeLessThanOrEqual(6);
    expect(top).toBeLessThan(most * 2.01);
  }
});

test("nothing to show has one tick", () => {
  expect([ticks(0, 4), ticks(Number.NaN, 4), ticks(-5, 4)]).toEqual([[0], [0], [0]]);
});

test("labels are thinned out until they have room", () => {
  expect([labelEvery(10, 400, 40), labelEvery(100, 400, 40), labelEvery(0, 0, 40)]).toEqual([1, 10, 1]);
});
