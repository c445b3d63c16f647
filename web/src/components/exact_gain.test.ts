import { expect, test } from "vitest";
import type { Advice } from "../api/types";
import { exactGain } from "./exact_gain";

const row = (of: Partial<Advice>) => ({ gain_low_ns: null, gain_high_ns: null, gain_method: null, ...of }) as Advice;

test("a gain is told with both of its ends and its method", () => {
  expect(exactGain(row({ gain_low_ns: 0, gain_high_ns: 1_234_567, gain_method: "upper bound: all" }))).toBe(
    "0 ns to 1234567 ns: upper bound: all",
  );
  expect(exactGain(row({ gain_low_ns: 1_000, gain_method: "lower bound: more" }))).toBe(
    "1000 ns or more: lower bound: more",
  );
  expect(exactGain(row({}))).toBe("");
});
