// The timeline of many ranks: a row each, of which only those on the screen are asked for.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { at, goTo, open, settled } from "./browser";
import { simulate, view } from "./stepscope";
import { asked, canvas, selected } from "./timeline_page";
import { viewerOf } from "./viewer";
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
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const viewer = viewerOf(async () => {
  folder = mkdtempSync(join(tmpdir(), "ranks-"));
  mkdirSync(join(folder, "traces"));
  for (let rank = 0; rank < RANKS; rank++) {
    writeFileSync(join(folder, "traces", `rank${rank}.json`), JSON.stringify(traceOf(rank)));
  }
  return view([folder]);
});

test("each rank is a row; a collective is selected on it, and only what is seen is asked for", async () => {
  const { page, close } = await viewer.show("timeline");
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
  const { page, close } = await viewer.show("timeline");
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

test("a collective that is selected is marked and listed on all ranks, and the list leads to each", async () => {
  const folder = mkdtempSync(join(tmpdir(), "job-"));
  // A folder in a folder is one run.
  const job = join(folder, "job");
  simulate(job, 12, 2, "ddp");
  // The ranks do the same collectives in the same order: this is the second of each.
  const of = Array.from({ length: 12 }, (_, rank) => {
    const { traceEvents } = JSON.parse(readFileSync(join(job, `rank${rank}.json`), "utf8"));
    const isIts = ({ cat, name }: { cat?: string; name?: string }) => cat === "kernel" && name === "ncclDevKernel";
    return traceEvents.filter(isIts).sort((a: { ts: number }, b: { ts: number }) => a.ts - b.ts)[1];
  });
  const durations = of.map(({ dur }) => `${Math.round(dur * 1000)} ns`);
  const starts = of.map(({ ts }) => Math.round((ts - of[0].ts) * 1000));
  const server = await view([folder]);
  const { page, close } = await open(viewer.browser, at(server.url, "timeline"));
  await settled(page);
  const accented = () =>
    canvas(page).evaluate((canvas: HTMLCanvasElement) => {
      const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height + 1 });
      const context = copy.getContext("2d", { willReadFrequently: true });
      if (!context) throw new Error("there is no canvas");
      context.drawImage(canvas, 0, 0);
      const read = context.getImageData(0, 0, canvas.width, canvas.height).data;
      const span = document.createElement("span");
      span.style.color = "var(--accent)";
      canvas.parentElement?.append(span);
      context.fillStyle = getComputedStyle(span).color;
      context.fillRect(0, canvas.height, 1, 1);
      span.remove();
      const [r, g, b] = context.getImageData(0, canvas.height, 1, 1).data;
      const rows = new Set<number>();
      for (let pixel = 0; pixel < read.length; pixel += 4) {
        if (read[pixel] === r && read[pixel + 1] === g && read[pixel + 2] === b)
          rows.add(Math.floor(pixel / 4 / canvas.width));
      }
      return rows.size;
    });
  expect(await accented()).toBe(0);
  const { hit } = await (await asked(server, "api/runs/0/search/next?q=ncclDevKernel&after_ns=0")).json();
  const { parts } = await (await asked(server, `api/runs/0/slices/${hit.id}/joined`)).json();
  expect(parts).toHaveLength(12);
  const kernels = await (
    await asked(server, `api/runs/0/slices?rows=${parts[2].slice.row}&start_ns=0&end_ns=1000000000`)
  ).json();
  const { start_ns, name } = kernels[1];
  await goTo(page, `timeline?at=${start_ns}&at-rank=2&at-name=${name}`);
  const table = page.getByRole("table", { name: "On each rank" });
  await table.waitFor();
  const titles = (column: number) =>
    table
      .locator(`tbody td:nth-child(${column}) .value`)
      .evaluateAll((values) => values.map((value) => (value as HTMLElement).title));
  expect(await titles(3)).toEqual(durations);
  const shown = (await titles(2)).map((title) => Number.parseInt(title, 10));
  expect(shown.map((start) => start - (shown[0] ?? 0))).toEqual(starts);
  // The shortest came last.
  const last = of.findIndex(({ dur }) => dur === Math.min(...of.map(({ dur }) => dur)));
  await page.getByText(`Rank ${last} came last.`).waitFor();
  // On each of the closed ranks that are seen.
  await page.waitForFunction(() => document.querySelectorAll(".timeline-label.header").length > 2);
  const headers = await page.locator(".timeline-label.header").count();
  expect(await accented()).toBeGreaterThan(headers * 10);
  expect(await violations(page)).toEqual([]);
  await table.getByRole("button", { name: "Rank 5" }).click();
  await page.waitForURL(/at-rank=5/);
  await settled(page);
  await expect.poll(() => titles(3)).toEqual(durations);
  await canvas(page).press("Escape");
  await table.waitFor({ state: "detached" });
  await close();
  await server.stop();
  rmSync(folder, { recursive: true });
});
