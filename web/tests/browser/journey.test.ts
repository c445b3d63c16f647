// From a kernel on the timeline to the line of the program that made it run.

import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { view } from "./stepscope";
import { viewerOf } from "./viewer";

const LINES = ["import torch", "def step(a):", "    return torch.mm(a, a)  # the line", "step(torch.ones(9, 9))"];

let folder: string;
let program: string;
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const viewer = viewerOf(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "stepscope-journey-")));
  program = join(folder, "train.py");
  writeFileSync(program, `${LINES.join("\n")}\n`);
  const input = join(folder, "trace.json");
  writeFileSync(input, JSON.stringify(trace()));
  return view([input], ["--source", folder]);
});

/** A call of Python, an operator inside it, its launch, its kernel. */
function trace(): unknown {
  const ids = { "External id": 1, correlation: 7, device: 0, stream: 7 };
  const on = (tid: number) => ({ ph: "X", pid: tid === 1 ? 1 : 0, tid });
  const python = { "Python id": 1, "Python parent id": null };
  const events = [
    { ...on(1), cat: "python_function", name: `${program}(3): step`, ts: 100, dur: 90, args: python },
    { ...on(1), cat: "cpu_op", name: "aten::mm", ts: 110, dur: 60, args: { "External id": 1 } },
    { ...on(1), cat: "cuda_runtime", name: "cudaLaunchKernel", ts: 120, dur: 10, args: ids },
    { ...on(7), cat: "kernel", name: "a_kernel_of_mm", ts: 150, dur: 30, args: ids },
  ];
  const device = { id: 0, name: "a device", totalGlobalMem: 1e9, numSms: 10, computeMajor: 8, computeMinor: 0 };
  return { schemaVersion: 1, deviceProperties: [device], traceEvents: events };
}

test("kernel, launch, operator, call, line", async () => {
  const { page, close } = await viewer.show("timeline?q=a_kernel_of_mm");
  const title = (name: string) => page.locator(".timeline-title code", { hasText: name }).waitFor();
  await page.getByRole("button", { name: "Next hit" }).click();
  await title("a_kernel_of_mm");
  await page.locator("h3:has-text('Launched by') + ul button").click();
  await title("cudaLaunchKernel");
  await page.keyboard.press("ArrowUp");
  await title("aten::mm");
  const frame = page.locator("h3:has-text('Called from') + ol li").first();
  expect(await frame.textContent()).toContain("train.py");
  await frame.getByRole("link").click();
  await page.waitForURL(/#source\?/);
  await page
    .getByText(LINES[2] as string)
    .first()
    .waitFor();
  await close();
});
