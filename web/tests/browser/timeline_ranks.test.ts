// The timeline of many ranks: a row each, of which only those on the screen are asked for.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { at, goTo, launch, open, settled } from "./browser";
import { type View, view } from "./stepscope";
import { canvas, selected } from "./timeline_page";
import { violations } from "./violations";

const RANKS = 80;
const NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";

/** What torch.profiler writes of a rank that computes for a while and then communicates. */
function traceOf(rank: number): object {
  const pid = 100 + rank;
  const host = { ph: "X", pid, tid: pid };
  const onDevice = (stream: number, correlation: number) => ({
    ph: "X",
    cat: "kernel",
    pid: 0,
    tid: stream,
    args: { device: 0, context: 1, stream, correlation },
  });
  return {
    schemaVersion: 1,
    deviceProperties: [{ id: 0, name: "GPU" }],
    distributedInfo: { backend: "nccl", rank, world_size: RANKS },
    baseTimeNanoseconds: 1_700_000_000_000_000_000,
    traceEvents: [
      { ...host, cat: "user_annotation", name: "ProfilerStep#1", ts: 1000, dur: 1000 },
      { ...host, cat: "cuda_runtime", name: "cudaLaunchKernel", ts: 1010, dur: 5, args: { correlation: 1 } },
      { ...host, cat: "cuda_runtime", name: "cudaLaunchKernel", ts: 1020, dur: 5, args: { correlation: 2 } },
      { ...onDevice(7, 1), name: "sgemm", ts: 1050, dur: 400 + rank },
      { ...onDevice(20, 2), name: NCCL, ts: 1450 + rank, dur: 500 - rank },
    ],
  };
}

let folder: string;
let browser: Browser;
let server: View;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "ranks-"));
  mkdirSync(join(folder, "traces"));
  for (let rank = 0; rank < RANKS; rank++) {
    writeFileSync(join(folder, "traces", `rank${rank}.json`), JSON.stringify(traceOf(rank)));
  }
  browser = await launch();
  server = await view([folder]);
});
afterAll(async () => {
  await browser.close();
  await server.stop();
  rmSync(folder, { recursive: true });
});

test("each rank is a row; a collective is selected on it, and only what is seen is asked for", async () => {
  const { page, close } = await open(browser, at(server.url, "timeline"));
  await settled(page);
  const labels = page.locator(".timeline-label");
  expect(await labels.first().textContent()).toContain("Rank 0");
  const shown = await labels.count();
  expect(shown).toBeLessThan(RANKS / 2);
  expect(await page.locator(".timeline-label.header").count()).toBe(shown);
  await goTo(page, "timeline?view=0-1000000");
  const box = await canvas(page).boundingBox();
  const label = await labels.nth(2).boundingBox();
  if (!box || !label) throw new Error("nothing is shown");
  // Rank 2 communicates from 452 us on.
  await canvas(page).click({ position: { x: box.width * 0.7, y: label.y + label.height / 2 - box.y } });
  await selected(page, NCCL);
  expect(new URL(page.url()).hash).toContain("at-rank=2");
  expect(await page.locator(".timeline-label.header").count()).toBe(shown);
  const asked = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
  // What is asked for in several tiles is the minimap's.
  const tiles = asked.filter((address) => /\/tiles\?.*count=1$/.test(address));
  const rows = new Set(tiles.flatMap((address) => new URL(address).searchParams.get("rows")?.split(",") ?? []));
  expect(rows.size).toBeGreaterThanOrEqual(shown);
  expect(rows.size).toBeLessThan(RANKS / 2);
  expect(await violations(page)).toEqual([]);
  await close();
});

test("a rank is opened by its label, and by being chosen", async () => {
  const { page, close } = await open(browser, at(server.url, "timeline"));
  await settled(page);
  const stream = page.getByText("Stream 20", { exact: true });
  expect(await stream.count()).toBe(0);
  await page.getByRole("button", { name: "Open Rank 1", exact: true }).click();
  await stream.first().waitFor();
  await page.getByRole("button", { name: "Close Rank 1", exact: true }).click();
  await stream.first().waitFor({ state: "detached" });
  await goTo(page, "timeline?rank=70");
  await stream.waitFor();
  expect(await page.locator(".timeline-label.header").first().textContent()).toContain("Rank 70");
  await close();
});
