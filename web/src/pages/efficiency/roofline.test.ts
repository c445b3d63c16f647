import { expect, test } from "vitest";
import { decadesOf, pointsOf, roofsOf, shareOf } from "./roofline";

test("points are rows of which operations and bytes are known, the most device time first", () => {
  const row = (name: string, flops_per_byte: number | null, device_ns: number) => ({
    name,
    flops_per_byte,
    flops_per_s: flops_per_byte === null ? null : 1e12,
    device_ns,
  });
  const rows = [row("add", 0.1, 5), row("copy", null, 50), row("mm", 100, 20)];
  expect(pointsOf(rows).map(({ name, x }) => [name, x])).toEqual([
    ["mm", 100],
    ["add", 0.1],
  ]);
});

test("roofs are told once, the highest first", () => {
  const device = {
    fp16_flops_per_s: 312e12,
    fp32_tensor_flops_per_s: 156e12,
    fp32_flops_per_s: 156e12,
    fp8_flops_per_s: null,
  };
  expect(roofsOf(device).map(({ words }) => words)).toEqual(["16-bit floats", "32-bit floats in tensor cores"]);
});

test("axes are whole decades", () => {
  expect(decadesOf([0.3, 250])).toEqual({ from: -1, to: 3 });
  expect(decadesOf([10])).toEqual({ from: 1, to: 2 });
  expect(decadesOf([])).toEqual({ from: 0, to: 1 });
  expect(shareOf(10, { from: -1, to: 3 })).toBe(0.5);
});
