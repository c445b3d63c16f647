// Charts over time: what is read off them is what the command says, and a range that is dragged is what tables are of.

import { existsSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Row } from "../../src/api/types";
import { exactCell } from "../../src/format/cell";
import { at, launch, open, settled } from "./browser";
import { FILES, INPUTS, SLOW_FILES } from "./inputs";
import { served } from "./served";
import { analyze, type View } from "./stepscope";
import { shownColumns, shownRows, unitOf } from "./table";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

/** Drags over the chart between two shares of its width, and gives the range that the address then has. */
async function drag(page: Page, from: number, to: number): Promise<readonly [string, string]> {
  const box = await page.locator(".u-over").boundingBox();
  if (!box) throw new Error("there is no chart");
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * from, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * ((from + to) / 2), y);
  await page.mouse.move(box.x + box.width * to, y);
  await page.mouse.up();
  await page.waitForURL(/range=\d+-\d+/);
  await settled(page);
  const [, start, end] = /range=(\d+)-(\d+)/.exec(page.url()) ?? [];
  return [start ?? "", end ?? ""];
}

/** What the legend says of each line, every digit, with the mouse at a share of the chart's width. */
async function readOff(page: Page, share: number): Promise<string[]> {
  const box = await page.locator(".u-over").boundingBox();
  if (!box) throw new Error("there is no chart");
  await page.mouse.move(box.x + box.width * share, box.y + box.height / 2);
  await page.locator(".time-series .when", { hasText: /^at / }).waitFor();
  return page.locator(".time-series .value").evaluateAll((all) => all.map((each) => (each as HTMLElement).title));
}

/** The cells of a table, every digit, each row as one text. */
async function exactRows(page: Page, title: string): Promise<string[]> {
  return (await shownRows(page, title)).map((row) => row.map((cell) => cell.exact).join("|")).sort();
}

const exactOf = (rows: readonly Row[], columns: readonly string[]): string[] =>
  rows
    .map((row) => columns.map((name) => exactCell(unitOf(name, row[name] ?? null), row[name] ?? null)).join("|"))
    .sort();

describe.each(INPUTS)("memory of %s", (input) => {
  let server: View;
  beforeAll(async () => {
    server = await served([input]);
  });
  afterAll(() => server.stop());

  test("tables are of the memory and the range that were chosen", async () => {
    for (const { rank, device } of analyze("memory_summary", input).results.slice(0, 3)) {
      const memory = `${rank}/${device ?? "host"}`;
      const { page, close } = await open(browser, at(server.url, `memory?memory=${memory}`));
      await settled(page);
      const [start, end] = await drag(page, 0.4, 0.6);
      expect(Number(end)).toBeGreaterThan(Number(start));
      const part = ["--start-ns", start, "--end-ns", end];
      for (const [title, analysis] of [
        ["Who holds the peak", "memory_peak"],
        ["By operator", "memory_statistics"],
      ] as const) {
        const all = analyze(analysis, input, ...part).results;
        const expected = all.filter((row) => row.rank === rank && row.device === device);
        if (expected.length === 0) continue;
        const columns = await shownColumns(page, title);
        expect(await exactRows(page, title), `${title} of ${memory}`).toEqual(exactOf(expected, columns));
      }
      const events = analyze("memory_events", input, ...part).results;
      const count = events.filter((row) => row.rank === rank && row.device === device).length;
      const grid = page.getByRole("grid", { name: "Allocations", exact: true });
      expect(count === 0 ? 0 : Number(await grid.getAttribute("aria-rowcount")) - 1).toBe(count);
      await close();
    }
  });

  test("the curve says what the command says", async () => {
    const rows = analyze("memory_curve", input).results;
    const [first] = rows;
    if (!first) return;
    const place = `memory?memory=${first.rank}/${first.device ?? "host"}`;
    const { page, close } = await open(browser, at(server.url, place));
    await settled(page);
    const of = rows.filter((row) => row.rank === first.rank && row.device === first.device);
    const known = of.map((row) =>
      [row.allocated_bytes, row.reserved_bytes].filter((cell) => cell != null).map((cell) => exactCell("bytes", cell)),
    );
    for (const share of [0.3, 0.5, 0.8, 0.999]) {
      const shown = await readOff(page, share);
      // Before the first event there is nothing to say, after it there always is.
      if (shown.length > 0) expect(known.map(String)).toContain(String(shown));
      else expect(share).not.toBe(0.999);
    }
    await close();
  });
});

describe("files", () => {
  let server: View;
  beforeAll(async () => {
    server = await served([FILES]);
  });
  afterAll(() => server.stop());

  test("a range that is dragged is what files and processes are of, and Back takes it away", async () => {
    const { page, close } = await open(browser, at(server.url, "io"));
    await settled(page);
    const all = await exactRows(page, "Files");
    const [start, end] = await drag(page, 0.02, 0.5);
    for (const options of [[], ["--group-by", "process"]]) {
      const title = options.length > 0 ? "Processes" : "Files";
      const expected = analyze("io_files", FILES, "--start-ns", start, "--end-ns", end, ...options).results;
      expect(expected.length).toBeGreaterThan(0);
      expect(await exactRows(page, title)).toEqual(exactOf(expected, await shownColumns(page, title)));
    }
    expect(await exactRows(page, "Files")).not.toEqual(all);
    await page.goBack();
    await settled(page);
    expect(await exactRows(page, "Files")).toEqual(all);
    await close();
  });

  test("a range is typed as well, and every page can be of it", async () => {
    const { page, close } = await open(browser, at(server.url, "io"));
    await settled(page);
    await page.getByRole("textbox", { name: "From" }).fill("1.5");
    await page.getByRole("textbox", { name: "to" }).fill("1");
    await page.getByRole("button", { name: "Select" }).click();
    await page.getByText(/A range begins before it ends/).waitFor();
    await page.getByRole("textbox", { name: "to" }).fill("3.000001");
    await page.keyboard.press("Enter");
    await page.waitForURL(/range=1500000-3000001/);
    await page.getByRole("button", { name: "All pages: only this range" }).click();
    await page.waitForURL(/window=1500000-3000001/);
    await page.getByRole("link", { name: "Operators", exact: true }).click();
    await page.waitForURL(/#operators\?window=1500000-3000001/);
    await close();
  });

  test.skipIf(!existsSync(SLOW_FILES))("advice on files is what the command says", async () => {
    const slow = await served([SLOW_FILES]);
    const { page, close } = await open(browser, at(slow.url, "io"));
    await settled(page);
    const expected = analyze("advice", SLOW_FILES).results.map(({ rule }) => String(rule));
    const ofFiles = [...new Set(expected)].filter((rule) => /^(io|input)\./.test(rule));
    expect(ofFiles.length).toBeGreaterThan(0);
    const shown = page.getByRole("region", { name: "Advice" }).locator("li .advice-head code");
    expect(await shown.allTextContents()).toEqual(ofFiles);
    await close();
    await slow.stop();
  });

  /** Reads the chart off at many places; each must be what the command says of one of its buckets. */
  async function compareChart(place: string, options: readonly string[], known: (rows: readonly Row[]) => string[][]) {
    const { page, close } = await open(browser, at(server.url, place));
    await settled(page);
    const said = /([\d.,]+) (µs|ms|s)/.exec((await page.getByText(/^In buckets of/).textContent()) ?? "");
    const bucket_ms =
      Number(said?.[1]?.replaceAll(",", "")) * { µs: 0.001, ms: 1, s: 1000 }[String(said?.[2]) as "µs" | "ms" | "s"];
    const expected = known(analyze("io_curve", FILES, "--bucket", String(bucket_ms), ...options).results);
    const seen = new Set<string>();
    for (let share = 0.05; share < 1; share += 0.05) seen.add(String(await readOff(page, share)));
    for (const shown of seen) expect([...expected.map(String), ""]).toContain(shown);
    expect(seen.size).toBeGreaterThan(1);
    await close();
  }

  test("the chart says what the command says of the same buckets", () =>
    compareChart("io", [], (rows) =>
      rows.map((row) =>
        [row.read_bytes_per_s, row.write_bytes_per_s].map((cell) => exactCell("bytes_per_s", cell ?? null)),
      ),
    ));

  test("split by action, it says the calls of each", () =>
    compareChart("io?show=calls&split=action", ["--group-by", "action"], (rows) =>
      [...new Set(rows.map((row) => row.start_ns))].map((start_ns) =>
        rows.filter((row) => row.start_ns === start_ns).map((row) => exactCell("count", row.calls_per_s ?? null)),
      ),
    ));
});
