import { expect, test } from "vitest";
import { boundOf, decadesOf, pointsOf, productsOf, roofsOf, shareOf } from "./roofline";

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

test("what limits an operator is not known where no roof is", () => {
  const colours = ["compute", "memory", null].map((bound) => boundOf({ bound }).colour);
  expect(colours).toEqual(["compute", "copy", "other"]);
});

test("devices of one product have roofs once", () => {
  const [first, second, third] = ["A100", "H100", "A100"].map((name, device) => ({ name, device }));
  const products = productsOf([first, second, third, { name: null, device: 3 }].flatMap((device) => device ?? []));
  expect(products.map(({ name, count, device }) => [name, count, device.device])).toEqual([
    ["A100", 2, 0],
    ["H100", 1, 1],
    ["unnamed", 1, 3],
  ]);
  expect(productsOf([])).toEqual([]);
});

test("axes are whole decades", () => {
  expect(decadesOf([0.3, 250])).toEqual({ from: -1, to: 3 });
  expect(decadesOf([10])).toEqual({ from: 1, to: 2 });
  expect(decadesOf([])).toEqual({ from: 0, to: 1 });
  expect(shareOf(10, { from: -1, to: 3 })).toBe(0.5);
});
