import { expect, test } from "vitest";
import { tickStep, ticksOf } from "./ruler";

test("marks have room, and not more than they need", () => {
  for (const ns_per_px of [0.01, 0.3, 1, 7, 33, 1e3, 123456, 9.9e8]) {
    const step = tickStep(ns_per_px);
    expect(step).toBeGreaterThanOrEqual(Math.max(ns_per_px * 99.9, 1));
    expect(step).toBeLessThanOrEqual(Math.max(ns_per_px * 251, 1));
  }
});

test("what is written says where a mark is, and neighbours differ", () => {
  expect(ticksOf({ start_ns: 0, end_ns: 1e9 }, 500).map(({ label }) => label)).toEqual([
    "0 ms",
    "200 ms",
    "400 ms",
    "600 ms",
    "800 ms",
    "1,000 ms",
  ]);
  const deep = ticksOf({ start_ns: 4_123_000_000, end_ns: 4_123_000_060 }, 600);
  expect(deep[0]?.label).toBe("4,123,000,000 ns");
  for (const width of [300, 1500]) {
    for (const length of [16, 1e3, 1e6, 5e9, 1e12]) {
      const ticks = ticksOf({ start_ns: 3e9 - length / 2, end_ns: 3e9 + length / 2 }, width);
      expect(new Set(ticks.map(({ label }) => label)).size).toBe(ticks.length);
      expect(ticks.length).toBeGreaterThan(0);
    }
  }
});

test("there is nothing before the start", () => {
  expect(ticksOf({ start_ns: -1000, end_ns: 1000 }, 300).every(({ time_ns }) => time_ns >= 0)).toBe(true);
});

test("marks count from another moment, and none is before the start of the run", () => {
  const ticks = ticksOf({ start_ns: -50, end_ns: 950 }, 1000, 320);
  expect(ticks.map((tick) => [tick.time_ns, tick.label])).toEqual([
    [20, "-300 ns"],
    [120, "-200 ns"],
    [220, "-100 ns"],
    [320, "0 ns"],
    [420, "100 ns"],
    [520, "200 ns"],
    [620, "300 ns"],
    [720, "400 ns"],
    [820, "500 ns"],
    [920, "600 ns"],
  ]);
});
