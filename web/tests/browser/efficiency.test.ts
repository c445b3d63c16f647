// The roofs of Efficiency, where a run has devices of several products.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { formatCell } from "../../src/format/cell";
import { formatLarge } from "../../src/format/units";
import { at, open, settled } from "./browser";
import { served } from "./served";
import { analyze, CHECKOUT, view } from "./stepscope";
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

test("launches of graphs are what the command says; without any there is nothing of them", async () => {
  const graphs = `${CHECKOUT}tests/fixtures/gpu/graphs/run`;
  const rows = analyze("graphs", graphs).results;
  expect(rows.length).toBeGreaterThan(0);
  const server = await served([graphs]);
  const { page, close } = await open(viewer.browser, at(server.url, "efficiency"));
  await settled(page);
  const table = page.getByRole("region", { name: "Launches of graphs" });
  const cells = await table.locator("tr[data-row='0'] td").allTextContents();
  expect(cells).toEqual(expect.arrayContaining([String(rows[0]?.call), formatCell("ns", rows[0]?.gap_ns ?? null)]));
  await table.locator("tr[data-row='0']").click();
  await table.getByRole("link", { name: "Its launches on the timeline" }).click();
  await page.waitForURL(/#timeline\?.*q=cudaGraphLaunch/);
  await close();
  await server.stop();

  const without = await viewer.show("efficiency");
  expect(await without.page.getByRole("heading", { name: "Roofline as a table" }).count()).toBe(1);
  expect(await without.page.getByText("Launches of graphs").count()).toBe(0);
  await without.close();
});
