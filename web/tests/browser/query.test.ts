// The page of queries, with a program that only says that it runs SQL: what is asked, shown, marked and cancelled.

import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { at, IS_FIREFOX, open, settled } from "./browser";
import { CHECKOUT, view } from "./stepscope";
import { shownRows } from "./table";
import { viewerOf } from "./viewer";
import { violations } from "./violations";

let folder: string;
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const viewer = viewerOf(async () => {
  // Its tables are kept beside it.
  folder = mkdtempSync(join(tmpdir(), "stepscope-query-"));
  const trace = join(folder, "trace.json.gz");
  copyFileSync(`${CHECKOUT}tests/fixtures/kineto/a100_alexnet_sync.json.gz`, trace);
  const fake = fileURLToPath(new URL("fake_sql.mjs", import.meta.url));
  return view([trace], [], "", { STEPSCOPE_SQL: fake });
});

const EXAMPLE = "The names that take most time";
const POINTS = "SELECT start_ns, dur_ns FROM slice";

const editor = (page: Page) => page.getByRole("textbox", { name: "SQL", exact: true });
const result = (page: Page) => page.getByRole("region", { name: "Result", exact: true });
const example = (page: Page, title: string) => page.getByRole("button", { name: title, exact: true });
const place = (sql: string, more: Readonly<Record<string, string>> = {}) =>
  `query?${new URLSearchParams({ sql, ...more })}`;

/** Opens the page, with whatever the program says of its tables. */
async function opened(where = "query", options = {}) {
  const watched = await open(viewer.browser, at(viewer.server.url, where), options);
  await settled(watched.page);
  await example(watched.page, EXAMPLE).waitFor();
  return watched;
}

async function run(page: Page, sql: string): Promise<void> {
  await editor(page).fill(sql);
  await page.keyboard.press("Control+Enter");
  await page.waitForURL((url) => new URLSearchParams(url.hash.split("?")[1]).get("sql") === sql);
}

/** The texts of all cells. */
const texts = async (page: Page) => (await shownRows(page, "Result")).map((row) => row.map((cell) => cell.text));

test("an example runs, its rows have units, and a link has all of it", async () => {
  const { page, close } = await opened();
  await example(page, EXAMPLE).click();
  await result(page).getByText("3 rows", { exact: true }).waitFor();
  expect(await editor(page).inputValue()).toContain("SELECT name, sum(dur_ns)");
  const rows = [
    ["aten::mm", "4.86 s", "1,020", "1.00 MiB"],
    ["host_sync <b>", "2.46 ms", "510", "–"],
    ["aten::add", "861 ms", "12,000", "1.50 KiB"],
  ];
  expect(await texts(page)).toEqual(rows);
  await page.getByRole("columnheader", { name: "slices" }).getByRole("button").click();
  await page.waitForURL(/sort=slices/);
  expect((await texts(page)).map(([, , slices]) => slices)).toEqual(["12,000", "1,020", "510"]);

  await page.reload();
  await result(page).getByText("3 rows", { exact: true }).waitFor();
  expect((await texts(page)).map(([name]) => name)).toEqual(["aten::add", "aten::mm", "host_sync <b>"]);
  expect(await editor(page).inputValue()).toContain("GROUP BY name");
  await page.getByRole("grid", { name: "Result" }).locator('tr[data-row="2"]').click();
  const detail = page.getByRole("complementary", { name: "The row that is open" });
  expect(await detail.textContent()).toContain("2460000 ns");
  await close();
});

test("queries of a session are steps of Back and Forward", async () => {
  const { page, close } = await opened();
  await run(page, "SELECT shapes, seen");
  await result(page).getByText("2 rows", { exact: true }).waitFor();
  expect(await texts(page)).toEqual([
    ["[[2,3],[]]", "yes"],
    ["–", "no"],
  ]);
  await example(page, EXAMPLE).click();
  await result(page).getByText("3 rows", { exact: true }).waitFor();
  await page.goBack();
  await result(page).getByText("2 rows", { exact: true }).waitFor();
  expect(await editor(page).inputValue()).toBe("SELECT shapes, seen");
  await page.goForward();
  await result(page).getByText("3 rows", { exact: true }).waitFor();
  await close();
});

test("an error says what is wrong, and leads to its place", async () => {
  const { page, close } = await opened();
  const sql = "SELECT name,\n  nme FROM slice";
  await run(page, sql);
  const alert = result(page).getByRole("alert");
  await alert.waitFor();
  const said = (await alert.textContent()) ?? "";
  for (const words of ["there is no column nme", "line 2, column 3", "did you mean name?"])
    expect(said).toContain(words);
  const [line, mark] = await page.locator(".query-place code").allTextContents();
  expect([line, mark]).toEqual(["  nme FROM slice", "  ^"]);
  await page.getByRole("button", { name: "Go to the error" }).click();
  await page.waitForFunction(() => document.activeElement?.id === "query-sql");
  const selected = () =>
    editor(page).evaluate((element) => {
      const { value, selectionStart, selectionEnd } = element as HTMLTextAreaElement;
      return value.slice(selectionStart, selectionEnd);
    });
  await expect.poll(selected).toBe("nme");
  await page.keyboard.type("name");
  expect(await editor(page).inputValue()).toBe("SELECT name,\n  name FROM slice");
  await close((trouble) => trouble.includes("400"));
});

test("a query that is cancelled runs no more, nor one whose page is left", async () => {
  const pid = join(folder, "pid");
  const { page, close } = await opened();
  const started = async (sql: string) => {
    rmSync(pid, { force: true });
    await run(page, sql);
    await result(page).getByText("Running the query…").waitFor();
    await expect.poll(() => existsSync(pid), { timeout: 60_000 }).toBe(true);
    return Number(readFileSync(pid, "utf8"));
  };
  const runs = (number: number) => {
    try {
      process.kill(number, 0);
      return true;
    } catch {
      return false;
    }
  };
  const first = await started("SELECT pg_sleep(1)");
  expect(runs(first)).toBe(true);
  await page.getByRole("button", { name: "Cancel" }).click();
  await result(page).getByText("The query was cancelled.").waitFor();
  await expect.poll(() => runs(first), { timeout: 60_000 }).toBe(false);
  expect(await page.getByRole("button", { name: "Cancel" }).isDisabled()).toBe(true);

  const second = await started("SELECT pg_sleep(2)");
  await example(page, EXAMPLE).click();
  await result(page).getByText("3 rows", { exact: true }).waitFor();
  await expect.poll(() => runs(second), { timeout: 60_000 }).toBe(false);

  const third = await started("SELECT pg_sleep(3)");
  await page.getByRole("link", { name: "Overview", exact: true }).click();
  await settled(page);
  await expect.poll(() => runs(third), { timeout: 60_000 }).toBe(false);
  await close();
});

test("of many rows some are shown, and all can be saved", async () => {
  const { page, close } = await opened(place(POINTS));
  await result(page).getByText("The first 1,000 rows; there are more.").waitFor();
  for (const [name, ending, begin] of [
    ["CSV", ".csv", "start_ns,dur_ns\n0,1000\n"],
    ["Parquet", ".parquet", "PAR1"],
  ] as const) {
    const download = page.waitForEvent("download");
    await result(page).getByRole("link", { name, exact: true }).click();
    const file = await download;
    expect(file.suggestedFilename()).toBe(`trace.json.gz.query${ending}`);
    expect(readFileSync(await file.path(), "utf8").startsWith(begin)).toBe(true);
  }
  const more = result(page).getByRole("button", { name: "Show 1,000 more" });
  await more.click();
  await result(page).getByText("The first 2,000 rows; there are more.").waitFor();
  await more.click();
  await result(page).getByText("2,500 rows", { exact: true }).waitFor();
  expect(await more.count()).toBe(0);
  // What was read is there again, and what follows may not be.
  await run(page, `${POINTS} -- again`);
  await result(page).getByText("The first 1,000 rows; there are more.").waitFor();
  await page.goBack();
  await result(page).getByText("2,500 rows", { exact: true }).waitFor();
  await page.goForward();
  await result(page).getByText("The first 1,000 rows; there are more.").waitFor();
  await close();
});

// Firefox, as it is driven, asks for no other address than the page does.
test.skipIf(IS_FIREFOX)("rows that are no longer there can be asked for again", async () => {
  const { page, close } = await opened(place(POINTS));
  await result(page).getByText("The first 1,000 rows; there are more.").waitFor();
  const more = result(page).getByRole("button", { name: "Show 1,000 more" });
  await page.route("**/query/rows?**", (route) =>
    route.continue({
      url: route
        .request()
        .url()
        .replace(/rest=\d+/, "rest=0"),
    }),
  );
  await more.click();
  await result(page).getByRole("alert").getByText("run the query again").waitFor();
  expect(await more.count()).toBe(0);
  await page.getByRole("combobox", { name: "Rows at once" }).selectOption("10000");
  await result(page).getByText("2,500 rows", { exact: true }).waitFor();
  expect(page.url()).toContain("limit=10000");
  await close((trouble) => trouble.includes("410 (Gone)"));
});

test("a result is drawn as bars, as a line and as points", async () => {
  const { page, close } = await opened();
  await example(page, EXAMPLE).click();
  await result(page).getByText("3 rows", { exact: true }).waitFor();
  const shownAs = page.getByRole("combobox", { name: "Show as" });
  await shownAs.selectOption("bars");
  await page.waitForURL(/plot=bars/);
  const bars = page.getByRole("list", { name: "total_ns by name" }).getByRole("listitem");
  expect(await bars.allTextContents()).toEqual(["aten::mm4.86 s", "host_sync <b>2.46 ms", "aten::add861 ms"]);
  await page.getByRole("combobox", { name: "Lengths" }).selectOption("bytes");
  await page.waitForURL(/y=bytes/);
  // What has no number has no bar.
  await expect.poll(() => page.getByRole("list", { name: "bytes by name, 2 of 3 rows" }).count()).toBe(1);

  await example(page, "Durations over time").click();
  await result(page).getByText("The first 1,000 rows; there are more.").waitFor();
  for (const kind of ["scatter", "line"]) {
    await shownAs.selectOption(kind);
    await page.waitForURL(new RegExp(`plot=${kind}`));
    const chart = page.getByRole("slider", { name: "dur_ns by start_ns" });
    await chart.focus();
    await page.keyboard.press("End");
    await expect.poll(() => chart.getAttribute("aria-valuetext")).toBe("start_ns 999 ms, dur_ns 2.08 µs");
    const drawn = () =>
      page.locator(".xy-chart canvas").evaluate((element) => {
        const canvas = element as HTMLCanvasElement;
        const pixels = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
        const colours = new Set<string>();
        for (let at = 0; at < pixels.length; at += 4) colours.add(`${pixels[at]} ${pixels[at + 1]} ${pixels[at + 2]}`);
        return colours.size;
      });
    await expect.poll(drawn).toBeGreaterThan(3);
  }
  await run(page, "SELECT shapes, seen");
  await result(page).getByText("A line plot needs two columns of numbers; this result has none.").waitFor();
  await close();
});

test("names are completed by keys, and written by clicks", async () => {
  const { page, close } = await opened();
  const list = page.getByRole("listbox", { name: "Names that fit" });
  await editor(page).click();
  await page.keyboard.type("SELECT st");
  await list.waitFor();
  expect(await list.getByRole("option").locator("code").allTextContents()).toEqual(["start_ns", "stddev"]);
  await page.keyboard.press("ArrowDown");
  await list.getByRole("option", { name: "stddev", selected: true }).waitFor();
  const active = await editor(page).getAttribute("aria-activedescendant");
  expect(await page.locator(`[id="${active}"]`).textContent()).toContain("stddev");
  await page.keyboard.press("Enter");
  await list.waitFor({ state: "detached" });
  await page.keyboard.type("dur_ns) FROM sl");
  await list.waitFor();
  await page.keyboard.press("Tab");
  expect(await editor(page).inputValue()).toBe("SELECT stddev(dur_ns) FROM slice");
  // A list that is closed leaves the keys to the text, and Tab to the page.
  await page.keyboard.type(" WHERE na");
  await list.waitFor();
  await page.keyboard.press("Escape");
  await list.waitFor({ state: "detached" });
  await page.keyboard.press("Enter");
  expect(await editor(page).inputValue()).toBe("SELECT stddev(dur_ns) FROM slice WHERE na\n");
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Run");

  await editor(page).fill("SELECT");
  await page.getByText("kernel", { exact: true }).click();
  await page.getByRole("button", { name: "dur_ns", exact: true }).and(page.locator(":visible")).click();
  expect(await editor(page).inputValue()).toBe("SELECT dur_ns");
  await page.keyboard.type(" FROM ke");
  await list.getByRole("option", { name: "kernel" }).click();
  expect(await editor(page).inputValue()).toBe("SELECT dur_ns FROM kernel");
  await close();
});

// The process of Firefox that shows this page ends while axe-core looks at it.
test.skipIf(IS_FIREFOX).each(["light", "dark"] as const)("axe-core finds nothing, %s", async (colorScheme) => {
  const { page, close } = await opened("query", { colorScheme });
  const check = async (what: string) => expect(await violations(page), what).toEqual([]);
  for (const table of await page.locator(".query-table > summary").all()) await table.click();
  await editor(page).click();
  await page.keyboard.type("SELECT st");
  await page.getByRole("listbox").waitFor();
  await check("a list of names");
  await example(page, EXAMPLE).click();
  await result(page).getByText("3 rows", { exact: true }).waitFor();
  await page.getByRole("grid", { name: "Result" }).locator('tr[data-row="0"]').click();
  await check("rows");
  for (const kind of ["bars", "line", "scatter"]) {
    await page.getByRole("combobox", { name: "Show as" }).selectOption(kind);
    await page.waitForURL(new RegExp(`plot=${kind}`));
    await settled(page);
    await check(kind);
  }
  await run(page, "SELECT nme FROM slice");
  await page.getByRole("button", { name: "Go to the error" }).waitFor();
  await check("an error");
  await run(page, "SELECT pg_sleep(9)");
  await result(page).getByText("Running the query…").waitFor();
  await check("running");
  await page.getByRole("button", { name: "Cancel" }).click();
  await result(page).getByText("The query was cancelled.").waitFor();
  await check("cancelled");
  await close((trouble) => trouble.includes("400"));
});

test("nothing sticks out of a narrow window", async () => {
  const { page, close } = await opened(place("SELECT start_ns, dur_ns FROM slice", { plot: "line" }), {
    viewport: { width: 400, height: 800 },
  });
  const [content, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  expect(content).toBeLessThanOrEqual(room ?? 0);
  await close();
});

test("where the program is not installed the page says how to get it", async () => {
  const { page, close } = await open(viewer.browser, "about:blank");
  await page.route("**/api/about", (route) => route.fulfill({ json: { version: "0", editor: null, sql: false } }));
  await page.goto(at(viewer.server.url, "query"));
  await page.getByText("pip install 'stepscope[sql]'").waitFor();
  await page.locator("nav a.missing", { hasText: "Query" }).waitFor();
  expect(await violations(page)).toEqual([]);
  await close((trouble) => trouble.startsWith("asks"));
});
