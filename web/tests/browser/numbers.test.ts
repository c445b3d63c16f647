// The numbers on the pages are those of the command line, every digit. The tests of an input share a page.

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Breakdown } from "../../src/api/types";
import { exactCell, formatCell } from "../../src/format/cell";
import { goTo, launch, open, pagesOf, settled, type Watched } from "./browser";
import { HANG, INPUTS, RANKS } from "./inputs";
import { served } from "./served";
import { analyze, report, type View } from "./stepscope";
import { inOrder, shownColumns, shownOf, shownRows } from "./table";

/** Tables, where they are, and what the command is asked for the same. */
const TABLES = [
  ["operators", "All operators", "operators", []],
  ["operators?group=shapes", "All operators", "operators", ["--group-by", "shapes"]],
  ["operators?group=stack", "All operators", "operators", ["--group-by", "stack"]],
  ["operators?group=module", "All operators", "operators", ["--group-by", "module"]],
  ["operators?group=category", "All operators", "operators", ["--group-by", "category"]],
  ["kernels", "All kernels", "kernels", []],
  ["kernels?group=properties", "All kernels", "kernels", ["--group-by", "properties"]],
  ["kernels", "Launches", "launch_statistics", []],
  ["kernels?launches=name", "Launches", "launch_statistics", ["--group-by", "name"]],
  ["modules", "All modules", "modules", []],
  ["memory", "Peaks", "memory_summary", []],
  ["io", "Files", "io_files", []],
  ["io", "Processes", "io_files", ["--group-by", "process"]],
  ["io", "Input and output of each step", "io_summary", []],
  ["io", "Layers", "io_summary", ["--group-by", "layer"]],
  ["io", "Workers of a DataLoader", "io_workers", []],
  ["io", "Slowest batches", "io_samples", []],
  ["io", "Checkpoints", "checkpoints", []],
  ["io", "How long steps wait for data", "step_breakdown", []],
  ["efficiency", "Use of devices", "gpu_utilization", []],
  ["efficiency", "Peak rates, and the share that is used", "device_peaks", []],
  ["efficiency", "Roofline as a table", "roofline", []],
  ["efficiency?group=shapes", "Roofline as a table", "roofline", ["--group-by", "shapes"]],
  ["efficiency?group=kernel", "Roofline as a table", "roofline", ["--group-by", "kernel"]],
  ["efficiency", "Copies", "copies", []],
  ["idle", "Longest gaps", "idle_gaps", []],
  ["idle", "Critical path of each step", "critical_path", []],
  ["idle", "Waits for devices", "synchronizations", []],
  ["idle", "Work in the queues", "queue_length", []],
  ["distributed", "Communication that is hidden", "overlap", []],
  ["distributed", "Collectives", "collectives", []],
  ["distributed", "Computation and communication by step", "ranks_overview", []],
  ["distributed", "Which ranks the others wait for", "stragglers", []],
  ["distributed", "What a change would save", "what_if", []],
  ["distributed", "Clocks", "clock_residuals", []],
  ["distributed", "Hangs", "hangs", []],
  ["distributed", "Causes of lateness", "lateness", []],
  ["distributed", "How unequally ranks share work", "imbalance", []],
  ["distributed", "Pipeline bubbles", "bubbles", []],
  ["distributed", "Process groups", "layout", []],
  ["distributed?c.cols=rank,name,group_description,works,kernels,input_elements", "Collectives", "collectives", []],
  ["source", "All lines", "source_lines", []],
  ["tables?analysis=step_breakdown", "Step breakdown", "step_breakdown", []],
  ["tables?analysis=kernel_durations", "Kernel durations", "kernel_durations", []],
  ["tables?analysis=idle_causes", "Idle causes", "idle_causes", []],
] as const;

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

test("the run of two ranks has the pages whose tables are left out where nothing was recorded", async () => {
  const server = await served([RANKS]);
  const { page, close } = await open(browser, server.url);
  await settled(page);
  expect(await pagesOf(page)).toEqual(expect.arrayContaining(["operators", "modules", "distributed", "source"]));
  await close();
  await server.stop();
});

describe.each([...INPUTS, HANG])("%s", (input) => {
  let server: View;
  let watched: Watched;
  beforeAll(async () => {
    server = await served([input]);
    watched = await open(browser, server.url);
    await settled(watched.page);
  });
  afterEach(() => expect(watched.troubles.splice(0)).toEqual([]));
  afterAll(async () => {
    await watched.close();
    await server.stop();
  });

  test.each(TABLES)("%s: %s", async (place, title, analysis, options) => {
    const expected = analyze(analysis, input, ...options).results;
    const { page } = watched;
    await goTo(page, place);
    const isThere = (await pagesOf(page)).includes(place.replace(/\?.*/, ""));
    if (!isThere) expect(await page.locator("main .notice.empty").count()).toBe(1);
    if (isThere && expected.length > 0) {
      const columns = await shownColumns(page, title);
      expect(columns.length).toBeGreaterThan(1);
      expect(inOrder(await shownRows(page, title))).toEqual(inOrder(shownOf(expected, columns)));
    } else expect(await page.getByRole("grid", { name: title, exact: true }).count()).toBe(0);
  });

  test("the overview says what the report says", async () => {
    const expected = report(input);
    const { page } = watched;
    await goTo(page, "overview");
    const verdict = await page.locator(".verdict p").allTextContents();
    expect(verdict).toEqual(expected.verdict.map((sentence) => sentence.replaceAll("`", "")));
    const listed = page.getByRole("region", { name: "Advice" }).locator("li");
    const advice = await listed.locator("code:first-of-type").allTextContents();
    for (const row of expected.advice) expect(advice).toContain(row.rule);
    expect(await listed.count()).toBe(expected.advice.length);
    const rules = [...new Set(expected.advice.map(({ rule }) => rule))].slice(0, 3);
    const { rules_judged: judged, rules_not_judged: others, not_judged: reasons } = expected.coverage;
    const notJudged = page.locator("details", {
      hasText: `${others} of ${judged + others} rules of advice were not judged`,
    });
    expect(await notJudged.locator("li").allTextContents()).toEqual(
      reasons.map(({ lacks, rules }) => `${lacks.replaceAll("`", "")} ${rules.join(", ")}`),
    );
    const first = page.getByRole("region", { name: "Most to gain" }).locator("li strong");
    const faults = rules.map((rule) => expected.advice.find((row) => row.rule === rule)?.fault);
    expect(await first.allTextContents()).toEqual(faults);
    const titlesOf = (name: string) =>
      page
        .getByRole("list", { name, exact: true })
        .locator(".value")
        .evaluateAll((values) => values.map((value) => (value as HTMLElement).title));
    // A part that took no time is not told.
    const cellsOf = (breakdown: Breakdown | null) =>
      (breakdown?.parts ?? [])
        .filter((part) => Number(part.ns) > 0)
        .flatMap((part) => [exactCell("ns", part.ns), exactCell("ratio", part.ratio)]);
    expect(await titlesOf("Where the time goes")).toEqual(cellsOf(expected.step_breakdown));
    for (const device of expected.devices.slice(0, 16)) {
      const name = `What GPU ${device.device} of rank ${device.rank} does`;
      expect(await titlesOf(name)).toEqual(cellsOf(device.breakdown));
    }
    // Why devices idle, the three causes with the most time of each.
    for (const device of expected.devices.slice(0, 16)) {
      const name = `Why GPU ${device.device} of rank ${device.rank} idles`;
      const causes = analyze("idle_causes", input).results.filter(
        (row) => row.rank === device.rank && row.device === device.device && Number(row.idle_ns) > 0,
      );
      causes.sort((one, other) => Number(other.idle_ns) - Number(one.idle_ns));
      const shown = await page
        .getByRole("list", { name, exact: true })
        .locator("li > .number .value")
        .evaluateAll((values) => values.map((value) => (value as HTMLElement).title));
      expect(shown).toEqual(causes.slice(0, 3).map((row) => exactCell("ns", row.idle_ns)));
    }
    for (const finding of expected.findings) {
      const said = page.getByRole("region", { name: "Findings" }).getByText(finding.says);
      expect(await said.isVisible()).toBe(true);
    }
  });

  test("the histogram of a kernel has its runs", async () => {
    const rows = analyze("kernel_durations", input).results;
    const first = rows[0];
    if (!first) return;
    const { page } = watched;
    await goTo(page, "kernels");
    const expected = rows.filter((row) => row.name === first.name && row.kind === first.kind);
    const figure = page.getByRole("slider", { name: `Runs of ${first.name} by duration`.slice(0, 60) });
    const inOne = page.getByText(/^All in one range: /);
    const titles = await (expected.length > 1 ? figure.locator("title") : inOne).allTextContents();
    const counts = titles.map((title) => Number(/: ([\d,]+) runs?\.?$/.exec(title)?.[1]?.replaceAll(",", "")));
    expect(counts.filter((count) => count > 0)).toEqual(expected.map((row) => row.count));
  });

  test("a column for every step where there are several, as long as the step", async () => {
    const steps = analyze("step_breakdown", input).results;
    const ranks = new Set(steps.map((step) => step.rank));
    const rank = [...ranks][0];
    const found = steps.filter((step) => step.rank === rank && step.step !== null).slice(0, 119);
    const expected = found.length > 1 ? found : [];
    const { page } = watched;
    await goTo(page, `overview?rank=${rank}`);
    const columns = page.locator(".columns-chart [role=button]");
    const words = await columns.evaluateAll((all) => all.map((column) => column.getAttribute("aria-label") ?? ""));
    expect(words.slice(0, expected.length).map((text) => text.split(/[,\n]/)[0])).toEqual(
      expected.map((step) => `step ${step.step} of rank ${rank}: ${formatCell("ns", step.total_ns ?? null)}`),
    );
  });
});
