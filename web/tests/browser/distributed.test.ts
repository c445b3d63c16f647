// Ranks side by side: what is shown is what the command line says, and what is chosen is chosen everywhere.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Row } from "../../src/api/types";
import { formatCell } from "../../src/format/cell";
import { at, goTo, open, settled } from "./browser";
import { HANG, RANKS } from "./inputs";
import { served } from "./served";
import { analyze, simulate } from "./stepscope";
import { inOrder, shownColumns, shownOf, shownRows } from "./table";
import { viewerOf } from "./viewer";
import { violations } from "./violations";

const viewer = viewerOf([RANKS]);

const steps = () => analyze("step_breakdown", RANKS).results.filter((row) => row.step !== null);
const wordsOf = (row: ReturnType<typeof steps>[number]) =>
  `step ${row.step} of rank ${row.rank}: ${formatCell("ns", row.total_ns)}${row.is_complete ? "" : ", cut by recording"}`;

test("the map has every step of every rank, as long as the command says", async () => {
  const expected = steps();
  expect(new Set(expected.map((row) => row.rank)).size).toBe(2);
  const { page, close } = await viewer.show("distributed");
  const cells = page.locator(".heat-map [role=button]");
  expect(await cells.evaluateAll((all) => all.map((cell) => cell.getAttribute("aria-label")))).toEqual(
    expected.map(wordsOf),
  );
  const complete = expected.filter((row) => row.is_complete).map((row) => Number(row.total_ns));
  const legend = await page
    .locator(".heat-legend .value")
    .evaluateAll((all) => all.map((one) => (one as HTMLElement).title));
  expect(legend).toEqual([`${Math.min(...complete)} ns`, `${Math.max(...complete)} ns`]);
  const shades = await cells.evaluateAll((all) => all.map((cell) => cell.getAttribute("class")));
  const shadeOf = (ns: number) => shades[expected.findIndex((row) => row.total_ns === ns)];
  expect([shadeOf(Math.min(...complete)), shadeOf(Math.max(...complete))]).toEqual(["heat heat-0", "heat heat-6"]);
  await close();
});

test("with the keyboard a step is found on the map, chosen, and seen on the timeline", async () => {
  const { page, close } = await viewer.show("distributed");
  await page.locator('.heat-map [tabindex="0"]').focus();
  await page.keyboard.press("ArrowDown");
  for (let moves = 0; moves < 3; moves++) await page.keyboard.press("ArrowRight");
  const row = steps().filter((row) => row.rank === 1)[3];
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
  expect(row && (await focused())).toBe(row && wordsOf(row));
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(`rank=1&step=${row?.step}$`));
  await settled(page);
  expect(await page.locator(".heat-map [aria-pressed=true]").count()).toBe(1);
  expect(await violations(page)).toEqual([]);
  const expected = analyze("collectives", RANKS, "--rank", "1", "--step", String(row?.step)).results;
  expect(expected.length).toBeGreaterThan(0);
  expect((await shownRows(page, "Collectives")).length).toBe(expected.length);
  await page.getByRole("link", { name: "On the timeline", exact: true }).click();
  await page.waitForURL(new RegExp(`#timeline\\?.*at=${row?.start_ns}`));
  await page.goBack();
  await settled(page);
  await page.getByRole("link", { name: "All ranks and steps" }).click();
  await page.waitForURL(/#distributed$/);
  await close();
});

test("a rank that is chosen by its bar is the rank of every table", async () => {
  const { page, close } = await viewer.show("distributed");
  const chart = page.getByRole("slider", { name: "Where the time of the average step goes" });
  await chart.focus();
  await page.keyboard.press("End");
  const [, mean] = analyze("step_breakdown", RANKS).results.filter((row) => row.step === null);
  expect(await chart.getAttribute("aria-valuetext")).toContain(
    `rank 1: operators on the CPU ${formatCell("ns", mean?.cpu_ns)}, outside of operators`,
  );
  await page.keyboard.press("Enter");
  await page.waitForURL(/rank=1$/);
  await settled(page);
  const rank = (await shownColumns(page, "Collectives")).indexOf("rank");
  const ranks = (await shownRows(page, "Collectives")).map((row) => row[rank]?.text);
  expect(new Set(ranks)).toEqual(new Set(["1"]));
  expect(ranks.length).toBe(analyze("collectives", RANKS, "--rank", "1").results.length);
  await close();
});

test("a job that hangs begins with the rank that the others wait for, and a row leads to where it is", async () => {
  const [first] = analyze("hangs", HANG).results;
  const server = await served([HANG]);
  const { page, close } = await open(viewer.browser, at(server.url, "distributed"));
  await settled(page);
  const said = await page.locator("main h1 + .waited-for").textContent();
  expect(said).toBe(`A collective does not end. Rank ${first?.rank}, ${first?.state}: ${first?.verdict}.`);
  await page.getByRole("grid", { name: "Hangs" }).locator('tr[data-row="1"]').click();
  await page.getByRole("link", { name: "Rank 0 on every page" }).click();
  await page.waitForURL(/rank=0/);
  await settled(page);
  expect(await violations(page)).toEqual([]);
  await close();
  await server.stop();
});

test("stages of a pipeline have bars of their bubbles, and ranks bars of why they are late", async () => {
  const folder = mkdtempSync(join(tmpdir(), "job-"));
  // A folder in a folder is one run.
  const job = join(folder, "job");
  simulate(job, 8, 3, "pipeline");
  const server = await served([folder]);
  const { page, close } = await open(viewer.browser, at(server.url, "distributed?step=1"));
  await settled(page);
  const expected = analyze("bubbles", job, "--step", "1").results;
  expect(expected).toHaveLength(8);
  const words = async (name: string) => {
    const chart = page.getByRole("slider", { name });
    await chart.focus();
    const said: (string | null)[] = [];
    for (const key of ["Home", ...Array.from({ length: 7 }, () => "ArrowRight")]) {
      await page.keyboard.press(key);
      said.push(await chart.getAttribute("aria-valuetext"));
    }
    return said;
  };
  const of = (row: Row, parts: readonly (readonly [name: string, words: string])[]) =>
    parts.flatMap(([name, words]) => (Number(row[name] ?? 0) > 0 ? [`${words} ${formatCell("ns", row[name])}`] : []));
  const bubbles = [
    ["warm_up_ns", "idle before the first computation"],
    ["steady_ns", "idle between"],
    ["drain_ns", "idle after the last"],
  ] as const;
  expect(await words("Time without computation of each rank of a pipeline")).toEqual(
    expected.map((row) => `rank ${row.rank}: ${of(row, bubbles).join(", ")}`),
  );
  const ideal = formatCell("ratio", expected[0]?.ideal_ratio);
  await page.getByText(`4 stages with 6 micro-batches explain ${ideal}`).waitFor();
  const idle = (row: Row) => Number(row.idle_ns);
  const longest = analyze("bubbles", job).results.reduce((most, row) => (idle(row) > idle(most) ? row : most));
  for (const [title, analysis] of [
    ["Causes of lateness", "lateness"],
    ["Pipeline bubbles", "bubbles"],
    ["How unequally ranks share work", "imbalance"],
    ["Process groups", "layout"],
  ] as const) {
    const rows = shownOf(analyze(analysis, job, "--step", "1").results, await shownColumns(page, title));
    expect(rows.length).toBeGreaterThan(0);
    expect(inOrder(await shownRows(page, title))).toEqual(inOrder(rows));
  }
  const late = analyze("lateness", job, "--step", "1").results;
  const causes = page.getByRole("slider", { name: "Lateness of each rank by cause" });
  await causes.focus();
  await page.keyboard.press("Home");
  const [first] = late.toSorted((a, b) => Number(a.rank) - Number(b.rank));
  const own = late.filter((row) => row.rank === first?.rank && row.group === first?.group);
  for (const row of own) expect(await causes.getAttribute("aria-valuetext")).toContain(formatCell("ns", row.late_ns));
  // Without a choice of a step it is the one with the rank that is idle longest.
  await goTo(page, "distributed");
  await page
    .getByText(`Rank ${longest.rank} is idle for ${formatCell("ratio", longest.idle_ratio)} of the step`)
    .waitFor();
  await page.getByRole("region", { name: `Bubbles of pipeline stages in step ${longest.step}` }).waitFor();
  expect(await violations(page)).toEqual([]);
  await close();
  await server.stop();
  rmSync(folder, { recursive: true });
});

test("every rank is listed with the process that takes part, not with the launcher", async () => {
  const { page, close } = await viewer.show("distributed");
  const table = page.getByRole("table", { name: "Ranks and devices" });
  const processes = await table.locator("tbody tr td:nth-child(3)").allTextContents();
  expect(processes).toEqual(["ddp.py", "ddp.py"]);
  await close();
});

test("of 1,024 ranks with 500 steps each a part is drawn, and every step can be reached", async () => {
  const context = await viewer.browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  const asked: number[][] = [];
  // The answers that such a run has; how long the server takes for them is measured elsewhere.
  await page.route(/\/api\/runs\/0(\?|$)/, async (route) => {
    const told = await (await route.fetch()).json();
    told.run.ranks = Array.from({ length: 1024 }, (_, rank) => rank);
    told.steps = { count: 512_000, first_rank: 0, numbers: [[0, 499]] };
    await route.fulfill({ json: told });
  });
  const total_ns = (rank: number, step: number) => 1_000_000 + rank * 1_000 + step;
  await page.route(/\/step_breakdown\?where=rank/, async (route) => {
    const told = await (await route.fetch()).json();
    const limits = [...new URL(route.request().url()).searchParams.getAll("where")].map((text) =>
      Number(text.split(":")[2]),
    );
    asked.push(limits);
    const [firstRank = 0, lastRank = 0, firstStep = 0, lastStep = 0] = limits;
    told.results = [];
    for (let rank = firstRank; rank <= lastRank; rank++) {
      for (let step = firstStep; step <= lastStep; step++) {
        told.results.push({ rank, step, start_ns: step, total_ns: total_ns(rank, step), is_complete: true });
      }
    }
    await route.fulfill({ json: told });
  });
  await page.goto(at(viewer.server.url, "distributed"));
  await settled(page);
  const cells = page.locator(".heat-map [role=button]");
  expect(await cells.count()).toBe(64 * 100);
  expect(await page.locator(".heat-map *").count()).toBeLessThan(64 * 100 + 200);
  await page.getByText("64 of 1,024 ranks are shown.").waitFor();
  await page.goto(at(viewer.server.url, "distributed?rank=1023&step=499"));
  await page.reload();
  await settled(page);
  const last = `step 499 of rank 1023: ${formatCell("ns", total_ns(1023, 499))}`;
  expect(await page.locator(".heat-map [aria-pressed=true]").getAttribute("aria-label")).toBe(last);
  expect(asked[0]).toEqual([0, 63, 0, 99]);
  expect(asked.at(-1)).toEqual([960, 1023, 400, 499]);
  // What the pointer is over says what it is.
  await page.getByRole("button", { name: last }).hover();
  await page.locator(".heat-map .pointed").filter({ hasText: last }).waitFor();
  await page.getByRole("button", { name: last }).click();
  await page.waitForURL(/#distributed$/);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await context.close();
});

test("the page begins with the rank that the others wait for, and leads to it", async () => {
  const [first] = analyze("stragglers", RANKS).results;
  expect(Number(first?.held_up_ns)).toBeGreaterThan(0);
  const { page, close } = await viewer.show("distributed");
  const said = page.locator(".waited-for");
  expect(await said.textContent()).toContain(`rank ${first?.rank}: ${formatCell("ns", first?.held_up_ns ?? null)}`);
  expect(await said.locator("strong .value").getAttribute("title")).toBe(`${first?.held_up_ns} ns`);
  await said.getByRole("link", { name: `Rank ${first?.rank} on the timeline` }).click();
  await page.waitForURL(new RegExp(`#timeline\\?rank=${first?.rank}$`));
  await close();
});

test("a bar of a rank says what the command says, and is chosen with the keyboard", async () => {
  const means = analyze("ranks_overview", RANKS).results.filter((row) => row.row === "mean");
  const { page, close } = await viewer.show("distributed");
  const chart = page.getByRole("slider", { name: "Computation and communication of each rank in the average step" });
  await chart.focus();
  await page.keyboard.press("End");
  const of = (name: string) => formatCell("ns", means[1]?.[name] ?? null);
  // What it has nothing of is not said.
  expect(means[1]?.overlap_ns).toBe(0);
  const words = `rank 1: compute ${of("compute_ns")}, exposed communication ${of("exposed_comm_ns")}, neither ${of("other_ns")}`;
  expect(await chart.getAttribute("aria-valuetext")).toBe(words);
  await page.keyboard.press("Enter");
  await page.waitForURL(/rank=1$/);
  await settled(page);
  expect(await violations(page)).toEqual([]);
  await close();
});

test("of 4,096 ranks each is drawn or stands behind one that stands out more", async () => {
  const context = await viewer.browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  const RANKS = 4096;
  const SLOW = 1234;
  const all = Array.from({ length: RANKS }, (_, rank) => rank);
  await page.route(/\/api\/runs\/0(\?|$)/, async (route) => {
    const told = await (await route.fetch()).json();
    told.run.ranks = all;
    await route.fulfill({ json: told });
  });
  const answer = (pattern: RegExp, rowOf: (rank: number) => object) =>
    page.route(pattern, async (route) => {
      const told = await (await route.fetch()).json();
      const limit = Number(new URL(route.request().url()).searchParams.get("limit"));
      told.results = all.map(rowOf).slice(0, limit);
      told.page = { ...told.page, matching: RANKS, total: RANKS, rows: told.results.length };
      await route.fulfill({ json: told });
    });
  await answer(/\/ranks_overview\?/, (rank) => {
    const compute_ns = rank === SLOW ? 9_000_000 : 5_000_000 + rank;
    const parts = { compute_ns, overlap_ns: 0, exposed_comm_ns: 9_500_000 - compute_ns, other_ns: 500_000 };
    return { rank, step: null, total_ns: 10_000_000, ...parts, busy_ratio: 0.5, is_complete: null, row: "mean" };
  });
  await answer(/\/stragglers\?/, (rank) => {
    const held_up_ns = rank === SLOW ? 3_000_000 : 0;
    const times = { transfer_ns: 500_000, waiting_ns: 4_000_000, total_ns: 4_500_000, held_up_ns, late_ns: 0 };
    return { rank, group: "0", group_size: RANKS, ranks: RANKS, calls: 3, last_calls: 0, ...times };
  });
  await page.goto(at(viewer.server.url, "distributed"));
  await settled(page);
  for (const name of [/^Computation and communication of each rank/, /^Transfer and waiting of each rank/]) {
    const chart = page.getByRole("slider", { name });
    const places = Number(await chart.getAttribute("aria-valuemax")) + 1;
    const each = Math.ceil(RANKS / places);
    expect(each).toBeGreaterThan(1);
    await chart.focus();
    await page.keyboard.press("End");
    expect(await chart.getAttribute("aria-valuenow")).toBe(String(places - 1));
    const box = await chart.boundingBox();
    const left = 64;
    const width = (box?.width ?? 0) - left;
    await chart.hover({ position: { x: left + ((Math.floor(SLOW / each) + 0.5) * width) / places, y: 100 } });
    const words = await chart.getAttribute("aria-valuetext");
    expect(words).toMatch(new RegExp(`^rank ${SLOW}[ :]`));
    expect(words).toContain(`of the ${each} bars from rank ${SLOW - (SLOW % each)}`);
    // Every column of pixels that has a bar is painted.
    const empty = await chart.locator("canvas").evaluate((canvas: HTMLCanvasElement, left) => {
      const context = canvas.getContext("2d");
      const { data } = context?.getImageData(left, 100, canvas.width - left, 1) ?? { data: [] };
      return data.filter((_, at) => at % 4 === 3).filter((alpha) => alpha < 250).length;
    }, left);
    expect(empty).toBe(0);
  }
  await page.getByLabel("In the order of").first().selectOption("compute");
  await settled(page);
  const chart = page.getByRole("slider", { name: /^Computation and communication of each rank/ });
  await chart.focus();
  await page.keyboard.press("Home");
  expect(await chart.getAttribute("aria-valuetext")).toMatch(new RegExp(`^rank ${SLOW}:`));
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await context.close();
});
