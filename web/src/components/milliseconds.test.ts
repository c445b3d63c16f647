import { expect, test } from "vitest";
import { millisecondsOf, nsOfMilliseconds } from "./milliseconds";

test("milliseconds are exact", () => {
  expect(["12.5", "0", " 3.000001 ", "7.", "999999999.999999"].map(nsOfMilliseconds)).toEqual([
    12_500_000, 0, 3_000_001, 7_000_000, 999_999_999_999_999,
  ]);
  expect(["", "-1", "1e3", ".5", "1.0000001", "9999999999", "ms"].map(nsOfMilliseconds)).toEqual(Array(7).fill(null));
});

test("a moment comes back from its text", () => {
  expect([0, 1, 1_000_000, 12_500_000, 100_000_000].map(millisecondsOf)).toEqual(["0", "0.000001", "1", "12.5", "100"]);
  for (let ns = 1; ns < 9e14; ns = ns * 7 + 3) expect(nsOfMilliseconds(millisecondsOf(ns))).toBe(ns);
});
