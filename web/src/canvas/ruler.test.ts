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
  expect(ticksOf({ start_ns: 0, end_ns: 1e9 }, 500).ticks.map(({ label }) => label)).toEqual([
    "0 ms",
    "200 ms",
    "400 ms",
    "600 ms",
    "800 ms",
    "1,000 ms",
  ]);
  for (const width of [300, 1500]) {
    for (const length of [16, 1e3, 1e6, 5e9, 1e12]) {
      const { ticks } = ticksOf({ start_ns: 3e9 - length / 2, end_ns: 3e9 + length / 2 }, width);
      expect(new Set(ticks.map(({ label }) => label)).size).toBe(ticks.length);
      expect(ticks.length).toBeGreaterThan(0);
    }
  }
});

test("what long labels have in common is said once, every digit of it", () => {
  const deep = (start_ns: number, length: number, zero_ns = 0) => {
    const { base, ticks } = ticksOf({ start_ns, end_ns: start_ns + length }, 600, zero_ns);
    return [base, ...ticks.slice(0, 2).map(({ label }) => label)];
  };
  expect(deep(4_123_456_000, 60)).toEqual(["4,123.456 ms", "+0 ns", "+10 ns"]);
  expect(deep(111_699_000, 30_000)).toEqual(["111 ms", "+700 µs", "+705 µs"]);
  expect(deep(4_123_999_000, 6_000)).toEqual(["4.123 s", "+999 µs", "+1,000 µs"]);
  expect(deep(12_300_000, 600)).toEqual(["12.300 ms", "+0 ns", "+100 ns"]);
  expect(deep(3_000_000_000_000, 6e9)).toEqual([null, "3,000 s", "3,001 s"]);
  expect(deep(100_000_000_500_000, 3_000_000)).toEqual(["100,000.000 s", "+500 µs", "+1,000 µs"]);
  expect(deep(0, 60_000, 111_750_000)).toEqual(["-112 ms", "+250 µs", "+260 µs"]);
  expect(deep(1_000_000, 60_000)).toEqual([null, "1,000 µs", "1,010 µs"]);
});

test("base and label of every mark are its time", () => {
  const sizes: Record<string, number> = { s: 1e9, ms: 1e6, µs: 1e3, ns: 1 };
  const ns = (text: string) => {
    const [number = "", unit = ""] = text.replace("+", "").replaceAll(",", "").split(" ");
    return Number(number) * (sizes[unit] ?? Number.NaN);
  };
  for (const start_ns of [0, 999_999, 12_345_678, 4_123_456_789, 7_654_321_987_654])
    for (const length of [60, 4_000, 250_000, 3e7, 2e10]) {
      const { base, ticks } = ticksOf({ start_ns, end_ns: start_ns + length }, 900);
      for (const { time_ns, label } of ticks) {
        expect((base ? ns(base) : 0) + ns(label)).toBeCloseTo(time_ns, 0);
        expect(label.length).toBeLessThan(11);
      }
    }
});

test("there is nothing before the start", () => {
  expect(ticksOf({ start_ns: -1000, end_ns: 1000 }, 300).ticks.every(({ time_ns }) => time_ns >= 0)).toBe(true);
});

test("marks count from another moment, and none is before the start of the run", () => {
  const { ticks } = ticksOf({ start_ns: -50, end_ns: 950 }, 1000, 320);
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
