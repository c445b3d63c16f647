// The roofs of Efficiency, where a run has devices of several products.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { formatLarge } from "../../src/format/units";
import { analyze, view } from "./stepscope";
import { viewerOf } from "./viewer";
import { violations } from "./violations";

const PRODUCTS = ["NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"] as const;

let [folder, trace] = ["", ""];
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const viewer = viewerOf(async () => {
  folder = mkdtempSync(join(tmpdir(), "stepscope-products-"));
  trace = join(folder, "trace.json");
  const host = { pid: 1, tid: 1 };
  const inputs = {
    "Input Dims": [
      [512, 512],
      [512, 512],
    ],
    "Input type": ["float", "float"],
    "Concrete Inputs": ["", ""],
  };
  // On each device a product of two matrices.
  const traceEvents = PRODUCTS.flatMap((_, device) => {
    const [ts, correlation] = [100 + device * 1000, 10 + device];
    const kernel = { device, stream: 7, correlation, context: 1 };
    return [
      {
        ph: "X",
        cat: "cpu_op",
        name: "aten::mm",
        ...host,
        ts,
        dur: 100,
        args: { "External id": correlation, ...inputs },
      },
      { ph: "X", cat: "cuda_runtime", name: "cudaLaunchKernel", ...host, ts: ts + 10, dur: 5, args: { correlation } },
      { ph: "X", cat: "kernel", name: "gemm", pid: device, tid: 7, ts: ts + 50, dur: 100, args: kernel },
    ];
  });
  const deviceProperties = PRODUCTS.map((name, id) => ({
    id,
    name,
    computeMajor: 8 + id,
    computeMinor: 0,
    numSms: 108,
  }));
  writeFileSync(trace, JSON.stringify({ schemaVersion: 1, deviceProperties, traceEvents }));
  return view([trace]);
});

test("the roofs are those of one product, which is named and can be another one", async () => {
  const peaks = analyze("device_peaks", trace).results;
  expect(peaks.map(({ name }) => name)).toEqual(PRODUCTS);
  const rates = peaks.map((row) => `16-bit floats: ${formatLarge(Number(row.fp16_flops_per_s))} operations/s`);
  expect(new Set(rates).size).toBe(2);
  const { page, close } = await viewer.show("efficiency");
  const roofline = page.getByRole("region", { name: "Roofline", exact: true });
  const choice = roofline.getByRole("combobox", { name: "Roofs of" });
  expect(await choice.locator("option").allTextContents()).toEqual(PRODUCTS.map((name) => `${name} (1 device)`));
  for (const nth of [0, 1]) {
    const name = PRODUCTS[nth] ?? "";
    await choice.selectOption(name);
    await roofline.getByText(`${name}: operations per second`).waitFor();
    const names = await roofline.locator("svg text").allTextContents();
    expect(names.filter((text) => rates.includes(text))).toEqual([rates[nth]]);
  }
  expect(page.url()).toContain(new URLSearchParams({ roofs: PRODUCTS[1] }).toString());
  expect(await violations(page)).toEqual([]);
  await close();
});
