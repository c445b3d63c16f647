// What Compare says of the runs themselves, and of more than two: settings, commands, the trend.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { at, open, settled } from "./browser";
import { RANKS, RUN } from "./inputs";
import { traceOf } from "./steps_trace";
import { compare, view } from "./stepscope";
import { viewerOf } from "./viewer";
import { violations } from "./violations";

let folder: string;
let [before, now] = ["", ""];
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const viewer = viewerOf(async () => {
  folder = mkdtempSync(join(tmpdir(), "stepscope-compare-runs-"));
  [before, now] = [join(folder, "before.json"), join(folder, "now.json")];
  writeFileSync(before, traceOf([1000, 1010, 1020, 1030, 1040], "gemm"));
  writeFileSync(now, traceOf([1500, 1510, 1520, 1530, 1540], "gemm"));
  return view([before, now]);
});

const verdictOf = (page: Page) => page.getByRole("region", { name: "Verdict" }).locator("p").textContent();

/** The rows of a table as texts of their cells. */
const cellsOf = (page: Page, name: string) =>
  page
    .getByRole("table", { name, exact: true })
    .locator("tbody tr")
    .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));

test("what differs between the runs themselves is said first: settings, commands, options", async () => {
  const pair = await view([RUN, RANKS]);
  const { page, close } = await open(viewer.browser, at(pair.url, "compare"));
  await settled(page);
  const region = page.getByRole("region", { name: "What differs between the runs" });
  const differing = await cellsOf(page, "What differs");
  const settings = compare(RUN, RANKS, "setting").results.filter(({ differs }) => differs === true);
  expect(settings.length).toBeGreaterThan(0);
  expect(differing.slice(0, settings.length).map((cells) => cells.slice(1))).toEqual(
    settings.map(({ a_value, b_value }) => [a_value, b_value]),
  );
  expect(differing.map(([name]) => name)).toEqual([
    "rank",
    "processor",
    "command",
    "operating system",
    "threads of PyTorch",
  ]);
  expect(differing[2]?.slice(1)).toEqual([
    "python examples/gpt/train.py --steps 12",
    "python -u tests/python/programs/ddp.py 12",
  ]);
  await region.getByText("The same in both").click();
  const same = await cellsOf(page, "The same in both");
  expect(same).toContainEqual(["PyTorch", "2.13.0+cu130", "2.13.0+cu130"]);
  await region.getByText("Recorded of one run only").click();
  const ofOne = await cellsOf(page, "Recorded of one run only");
  expect(ofOne).toContainEqual(["number of ranks of the job", "not recorded", "2"]);
  expect(await violations(page)).toEqual([]);
  await close();
  await pair.stop();
});

test("three runs have a trend: the mean step of each, and a column leads to the comparison with it", async () => {
  const longer = join(folder, "longer.json");
  writeFileSync(longer, traceOf([2500, 2510, 2520], "gemm"));
  const cut = join(folder, "without_steps.json");
  writeFileSync(cut, JSON.stringify({ schemaVersion: 1, traceEvents: [] }));
  const all = await view([before, now, cut, longer]);
  const { page, close } = await open(viewer.browser, at(all.url, "compare"));
  await settled(page);
  const region = page.getByRole("region", { name: "All runs" });
  await region.getByText("Click a column to compare").waitFor();
  const means = [before, now, longer].map((path) => Number(compare(path, path, "steps").results[0]?.a_mean_ns));
  const ms = (ns: number) => (ns / 1e6).toFixed(6);
  expect(await cellsOf(page, "Mean steps of all runs")).toEqual([
    ["1. before.json", ms(means[0] ?? 0), "–", "–"],
    ["2. now.json", ms(means[1] ?? 0), `+${ms((means[1] ?? 0) - (means[0] ?? 0))}`, "49.0 %"],
    ["3. without_steps.json", "no complete step"],
    ["4. longer.json", ms(means[2] ?? 0), `+${ms((means[2] ?? 0) - (means[1] ?? 0))}`, "65.1 %"],
  ]);
  const columns = region.getByRole("button", { name: /^run \d/ });
  expect(await columns.evaluateAll((all) => all.map((each) => each.getAttribute("aria-pressed")))).toEqual([
    "true",
    "true",
    "false",
  ]);
  expect(await violations(page)).toEqual([]);
  await columns.last().click();
  await page.waitForURL(/b=longer\.json/);
  await settled(page);
  expect(await verdictOf(page)).toBe(compare(before, longer, "steps").results[0]?.says);
  await close();
  await all.stop();
});

test("many runs are read when it is asked for, and nothing sticks out at 400 pixels", async () => {
  const paths = Array.from({ length: 9 }, (_, nth) => {
    const path = join(folder, `${"a_long_name_of_a_run_".repeat(4)}${nth}.json`);
    writeFileSync(path, traceOf([1000 + 100 * nth, 1010 + 100 * nth], "gemm"));
    return path;
  });
  const many = await view(paths);
  const { page, close } = await open(viewer.browser, at(many.url, "compare"), {
    viewport: { width: 400, height: 800 },
  });
  await settled(page);
  const region = page.getByRole("region", { name: "All runs" });
  expect(await region.getByRole("table").count()).toBe(0);
  await region.getByRole("link", { name: "Read all 9 runs" }).click();
  await region.getByText("Click a column to compare").waitFor();
  expect(await region.getByRole("button", { name: /^run \d/ }).count()).toBe(9);
  const rows = await cellsOf(page, "Mean steps of all runs");
  expect(rows.map(([, mean]) => mean)).toEqual(paths.map((_, nth) => `${(1.005 + 0.1 * nth).toFixed(6)}`));
  const [content, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  expect(content).toBeLessThanOrEqual(room ?? 0);
  await close();
  await many.stop();
});

test("two runs have no trend", async () => {
  const { page, close } = await viewer.show("compare");
  expect(await page.getByRole("region", { name: "All runs" }).count()).toBe(0);
  await close();
});
