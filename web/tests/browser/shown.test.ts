// What a page shows is whole, of the part that was chosen, and drawn as it is.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatCount } from "../../src/format/units";
import { at, goTo, launch, open, pagesOf, settled } from "./browser";
import { RANKS, RUN, TRACE } from "./inputs";
import { served } from "./served";
import { analyze, report, type View } from "./stepscope";
import { shownColumns } from "./table";

let browser: Browser;
let [run, trace] = [] as unknown as [View, View];
beforeAll(async () => {
  browser = await launch();
  [run, trace] = await Promise.all([served([RUN]), served([TRACE])]);
});
afterAll(async () => {
  await browser.close();
  await Promise.all([run.stop(), trace.stop()]);
});

/** Numbers of tables whose cells have no room for all of them. */
const cutNumbers = (page: Page) =>
  page
    .locator("main td.number")
    .evaluateAll((cells) =>
      cells.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent ?? ""),
    );

test("the Overview is of the range that was chosen for all pages", async () => {
  const [, , step] = analyze("step_breakdown", RUN).results.filter(({ step }) => step !== null);
  const [start, end] = [Number(step?.start_ns), Number(step?.start_ns) + Number(step?.total_ns)];
  const part = ["--start-ns", String(start), "--end-ns", String(end)];
  const [of, all] = [report(RUN, ...part), report(RUN)];
  expect(of.verdict).not.toEqual(all.verdict);
  const { page, close } = await open(browser, at(run.url, `overview?window=${start}-${end}`));
  await settled(page);
  const said = await page.getByRole("region", { name: "Verdict" }).locator("p").allTextContents();
  expect(said).toEqual(of.verdict.map((sentence) => sentence.replaceAll("`", "")));
  expect(await page.locator("main .notice").first().textContent()).toContain("covers the selected range only");
  await close();
});

test("no number is cut, on any page or table", async () => {
  const { page, close } = await open(browser, trace.url);
  await settled(page);
  const places = [...(await pagesOf(page)), "operators?group=shapes", "kernels?group=properties"];
  for (const name of ["roofline", "idle_causes", "critical_path", "step_breakdown", "memory_events"]) {
    places.push(`tables?analysis=${name}`);
  }
  for (const place of places) {
    await goTo(page, place);
    expect([place, await cutNumbers(page)]).toEqual([place, []]);
  }
  await close();
});

test("bars are called by what operators are grouped by, with the operator behind it", async () => {
  const server = await served([RANKS]);
  const { page, close } = await open(browser, at(server.url, "operators?group=module&by=host_total_ns"));
  await settled(page);
  const rows = analyze("operators", RANKS, "--group-by", "module", "--sort", "host_total_ns").results.slice(0, 10);
  expect(new Set(rows.map(({ module }) => module)).size).toBeGreaterThan(1);
  expect(await page.locator(".bars .bar-name").allTextContents()).toEqual(
    rows.map(({ module, name }) => `${module ?? "outside of modules"} · ${name}`),
  );
  await close();
  await server.stop();
});

test("on paper a table has its first rows without scrolling, and says how many are left out", async () => {
  const { page, close } = await open(browser, at(trace.url, "operators?group=shapes"));
  await settled(page);
  const section = page.getByRole("region", { name: "All operators" });
  const rows = () => section.locator("tr[data-row]").count();
  const all = analyze("operators", TRACE, "--group-by", "shapes").results.length;
  expect(all).toBeGreaterThan(30);
  const onScreen = await rows();
  await page.emulateMedia({ media: "print" });
  await expect.poll(rows).toBe(Math.min(all, 200));
  expect(await section.locator("td", { hasText: "…" }).count()).toBe(0);
  expect(await section.locator(".left-out").allTextContents()).toEqual(
    all > 200 ? [`The first 200 rows are printed; ${formatCount(all - 200)} are left out.`] : [],
  );
  const scroll = section.locator(".table-scroll");
  expect(await scroll.evaluate((box) => box.scrollHeight - box.clientHeight)).toBe(0);
  // The width of A4 between its margins.
  await page.setViewportSize({ width: 718, height: 1000 });
  expect(await scroll.evaluate((box) => box.scrollWidth - box.clientWidth)).toBe(0);
  await page.emulateMedia({ media: null });
  await page.setViewportSize({ width: 1280, height: 800 });
  await expect.poll(rows).toBe(onScreen);
  await close();
});

test("the browser's own printing has the same rows", async () => {
  const { page, close } = await open(browser, at(trace.url, "operators"));
  await settled(page);
  const all = analyze("operators", TRACE).results.length;
  const printed = await page.evaluate(async () => {
    dispatchEvent(new Event("beforeprint"));
    await null;
    const rows = document.querySelectorAll(".table-scroll tr[data-row]").length;
    dispatchEvent(new Event("afterprint"));
    return rows;
  });
  expect(printed).toBe(Math.min(all, 200));
  await close();
});

/** Texts of a table's column that are cut. */
const cutTexts = (page: Page, table: string, column: string) =>
  page.getByRole("grid", { name: table, exact: true }).evaluate((grid, column) => {
    const at = [...grid.querySelectorAll<HTMLElement>("thead th")].findIndex((th) => th.dataset.column === column);
    if (at < 0) return ["there is no such column"];
    const cells = [...grid.querySelectorAll("tr[data-row]")].flatMap((row) => row.querySelectorAll("td")[at] ?? []);
    const isCut = (element: Element) => element.scrollWidth > element.clientWidth + 1;
    return cells
      .filter((cell) => isCut(cell) || [...cell.querySelectorAll(".middle-cut > *")].some(isCut))
      .map((cell) => cell.textContent ?? "");
  }, column);

test("columns of texts are as wide as what is in them, before any number has more than it needs", async () => {
  const { page, close } = await open(browser, trace.url, { viewport: { width: 1440, height: 900 } });
  await settled(page);
  for (const [place, table, column] of [
    ["idle", "Longest gaps", "next_op"],
    ["idle", "Longest gaps", "cause"],
    ["idle", "Waits for devices", "call"],
    ["operators", "All operators", "category"],
    ["tables?analysis=advice", "Advice", "fault"],
  ] as const) {
    await goTo(page, place);
    expect([table, column, await cutTexts(page, table, column)]).toEqual([table, column, []]);
  }
  await close();
});

test("in a window of 1,024 pixels the run's name is whole, and the header one line", async () => {
  const server = await served([TRACE, RUN]);
  const { page, close } = await open(browser, server.url, { viewport: { width: 1600, height: 700 } });
  await settled(page);
  const name = page.locator("header .run select");
  const whole = (await name.boundingBox())?.width ?? 0;
  await page.setViewportSize({ width: 1024, height: 700 });
  expect((await name.boundingBox())?.width).toBeCloseTo(whole, 0);
  expect((await page.locator("header.top").boundingBox())?.height).toBeLessThan(50);
  // With more beside it, it gives way.
  await goTo(page, "operators?window=0-50000000");
  expect((await page.locator("header.top").boundingBox())?.height).toBeLessThan(50);
  await close();
  await server.stop();
});

test("what no row of a run can have is no column unless it is wanted", async () => {
  const { page, close } = await open(browser, at(run.url, "io"));
  await settled(page);
  const waiting = await shownColumns(page, "How long steps wait for data");
  expect(waiting).toEqual(expect.arrayContaining(["step", "total_ns", "dataloader_ns", "cpu_ns"]));
  expect(waiting.filter((name) => ["rank", "kernel_ns"].includes(name))).toEqual([]);
  await goTo(page, "operators");
  const operators = await shownColumns(page, "All operators");
  expect(operators.filter((name) => name.startsWith("device"))).toEqual([]);
  await goTo(page, "operators?cols=name,device_self_ns");
  expect(await shownColumns(page, "All operators")).toEqual(["name", "device_self_ns"]);
  await close();
});

test("columns of a histogram are as wide as their ranges on its axis", async () => {
  const [first] = analyze("kernel_durations", TRACE).results;
  const rows = analyze("kernel_durations", TRACE).results.filter(({ name }) => name === first?.name);
  const widths = rows.map((row) => Number(row.to_ns) - Number(row.from_ns));
  const isEqual = Math.max(...widths) <= Math.min(...widths) + 1;
  const { page, close } = await open(browser, at(trace.url, "kernels"));
  await settled(page);
  const chart = page.getByRole("region", { name: "Durations" }).locator("svg.chart").first();
  await chart.waitFor();
  const drawn = await chart
    .locator("g > rect[fill=transparent]")
    .evaluateAll((all) => all.map((rect) => Number(rect.getAttribute("width"))));
  const ranges = rows.toSorted((a, b) => Number(a.from_ns) - Number(b.from_ns));
  const wide = ranges.map(({ from_ns, to_ns }) =>
    isEqual ? Number(to_ns) - Number(from_ns) : Math.log2(Number(to_ns) / Math.max(Number(from_ns), 0.5)),
  );
  expect(drawn.length).toBe(wide.length);
  const scale = (drawn[0] ?? 1) / (wide[0] ?? 1);
  drawn.forEach((width, at) => {
    expect(width / scale).toBeCloseTo(wide[at] ?? 0, 3);
  });
  const text = await page.getByRole("region", { name: "Durations" }).textContent();
  expect(text?.includes("logarithmic")).toBe(!isEqual);
  await close();
});

test("a definition is no part of a heading", async () => {
  const { page, close } = await open(browser, at(run.url, "operators"));
  await settled(page);
  await page.getByRole("button", { name: "What “Operators” means" }).first().click();
  const dialog = page.getByRole("dialog", { name: "Operators" });
  await dialog.waitFor();
  expect(await page.locator("h1 dialog, h2 dialog").count()).toBe(0);
  expect(
    await dialog
      .locator("p")
      .first()
      .evaluate((text) => getComputedStyle(text).fontWeight),
  ).toBe("400");
  await close();
});

test("what the columns of a table mean is one press away, by mouse and by keyboard", async () => {
  const { page, close } = await open(browser, at(run.url, "operators"));
  await settled(page);
  const means = page.getByRole("region", { name: "All operators" }).getByRole("button", { name: /means$/ });
  const dialog = page.getByRole("dialog", { name: "Operators" });
  for (const press of [() => means.click(), () => means.press("Enter")]) {
    await press();
    const column = dialog.locator("dl > div").filter({ has: page.getByText("host self", { exact: true }) });
    expect(await column.textContent()).toContain("without the operators directly inside. nanoseconds");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
  }
  await close();
});

test("the row that is opened is seen, and the header stays", async () => {
  const { page, close } = await open(browser, at(run.url, "operators"));
  await settled(page);
  await page.locator('tr[data-row="3"]').first().click();
  const detail = page.getByRole("complementary", { name: "The row that is open" });
  await page.waitForFunction(() => {
    const box = document.querySelector(".row-detail")?.getBoundingClientRect();
    return box && box.top >= 0 && box.bottom <= innerHeight + 1;
  });
  expect(await detail.isVisible()).toBe(true);
  await page.mouse.wheel(0, 2_000);
  await page.waitForFunction(() => scrollY > 100);
  expect(Math.round((await page.locator("header.top").boundingBox())?.y ?? -1)).toBe(0);
  await close();
});

test("a few words lead to steps and names, and Escape closes at once", async () => {
  const { page, close } = await open(browser, at(run.url, "operators"));
  await settled(page);
  await page.keyboard.press("Control+k");
  const dialog = page.getByRole("dialog", { name: "Go to" });
  await page.keyboard.type("aten::addmm");
  const found = dialog.getByRole("link", { name: /^aten::addmm / });
  await found.waitFor();
  expect(await found.getAttribute("href")).toMatch(/^#timeline\?.*q=aten%3A%3Aaddmm/);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
  // Opened again before the browser has said that it was closed.
  for (let times = 0; times < 20; times++) {
    await page.keyboard.press("Control+k");
    await page.keyboard.press("Escape");
  }
  await page.keyboard.press("Control+k");
  await page.keyboard.type("step 5");
  await dialog.getByRole("link", { name: /^Step 5/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/step=5/);
  await close();
});

test("a row of means says that it is one", async () => {
  const { page, close } = await open(browser, at(run.url, "io"));
  await settled(page);
  const table = page.getByRole("grid", { name: "How long steps wait for data", exact: true });
  await table.evaluate((element) => element.parentElement?.scrollTo(0, 100_000));
  const mean = table.locator("tr.sum");
  await mean.first().waitFor();
  expect(await mean.first().textContent()).toContain("mean");
  await close();
});
