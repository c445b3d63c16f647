import { expect, test } from "vitest";
import { bucketMs } from "./buckets";

const of = (length_ns: number) => bucketMs({ start_ns: 7, end_ns: 7 + length_ns });

test("widths are round, and there are 200 to 500 of them", () => {
  expect([5e9, 1e9, 12e6, 25_000, 1].map(of)).toEqual(["10", "2", "0.05", "0.00005", "0.000001"]);
  for (let length = 1_000; length < 1e17; length = Math.round(length * 1.37)) {
    const ns = Number(of(length)) * 1e6;
    expect(length / ns).toBeLessThanOrEqual(501);
    expect(length / ns).toBeGreaterThan(199);
    expect(of(length)).toMatch(/^\d{1,9}(\.\d{1,6})?$/);
  }
});
