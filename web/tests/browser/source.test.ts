// From what takes the time to the line that asks for it, with its code, and on to an editor.

import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exactCell } from "../../src/format/cell";
import { placesOf } from "../../src/pages/operators/stack";
import { at, launch, open, settled } from "./browser";
import { RANKS } from "./inputs";
import { analyze, CHECKOUT, type View, view } from "./stepscope";
import { violations } from "./violations";

const FOLDER = `${CHECKOUT}tests/python/programs`;
const FILE = "ddp.py";
const CODE = readFileSync(`${FOLDER}/${FILE}`, "utf8");

let browser: Browser;
let server: View;
/** Where nothing is readable. */
let bare: View;
beforeAll(async () => {
  browser = await launch();
  [server, bare] = await Promise.all([view([RANKS], ["--source", FOLDER]), view([RANKS])]);
});
afterAll(async () => {
  await browser.close();
  await Promise.all([server.stop(), bare.stop()]);
});

const linesOf = (file: string) => analyze("source_lines", RANKS).results.filter((row) => row.file === file);
const titles = (page: Page, selector: string) =>
  page.locator(selector).evaluateAll((all) => all.map((one) => (one as HTMLElement).title));

test("files stand by the time that the command says, and lines have it beside their code", async () => {
  const files = analyze("source_lines", RANKS, "--group-by", "file", "--sort", "host_total_ns").results.slice(0, 12);
  const { page, close } = await open(browser, at(server.url, `source?file=${FILE}`));
  await settled(page);
  const list = 'section[aria-label="Files"]';
  expect(await page.locator(`${list} .bar-name`).allTextContents()).toEqual(
    files.map((row) => row.file ?? "without a call stack"),
  );
  expect(await titles(page, `${list} .value`)).toEqual(files.map((row) => exactCell("ns", row.host_total_ns)));

  const code = page.getByRole("table", { name: `Lines of ${FILE}` });
  await code.waitFor();
  expect((await code.locator("tbody code").allTextContents()).join("\n")).toBe(CODE.trimEnd());
  const rows = linesOf(FILE);
  expect(rows.length).toBeGreaterThan(0);
  for (const row of rows) {
    const cell = code.locator(`tr[data-line="${row.line}"] .gutter .value`);
    expect(await cell.getAttribute("title")).toBe(exactCell("ns", row.host_total_ns));
  }
  expect(await code.locator(".gutter .value").count()).toBe(rows.length);
  expect(await violations(page)).toEqual([]);
  await close();
});

test("a line is chosen in the code, and stands in the address", async () => {
  const { page, close } = await open(browser, at(server.url, `source?file=${FILE}&line=36`));
  await settled(page);
  const here = page.locator("table.code [aria-current=true] code");
  await here.waitFor();
  expect(await here.textContent()).toBe(CODE.split("\n")[35]);
  await page.getByRole("link", { name: "41", exact: true }).click();
  await page.waitForURL(/line=41/);
  await settled(page);
  expect(await here.textContent()).toBe(CODE.split("\n")[40]);
  await page.goBack();
  await settled(page);
  expect(await here.textContent()).toBe(CODE.split("\n")[35]);
  await close();
});

test("an editor opens the line; another one is kept", async () => {
  const { page, close } = await open(browser, at(server.url, `source?file=${FILE}&line=36`));
  await settled(page);
  const link = page.getByRole("link", { name: "Open line 36 in the editor" });
  expect(await link.getAttribute("href")).toBe(`vscode://file${FOLDER}/${FILE}:36`);
  await page.getByRole("combobox", { name: "Editor", exact: true }).selectOption("idea");
  expect(await link.getAttribute("href")).toBe(`idea://open?file=${FOLDER}/${FILE}&line=36`);
  await page.reload();
  await settled(page);
  expect(await link.getAttribute("href")).toBe(`idea://open?file=${FOLDER}/${FILE}&line=36`);
  await close();
});

test("a file that cannot be read says why and what to do, and its lines are known all the same", async () => {
  const { page, close } = await open(browser, at(bare.url, `source?file=${FILE}`));
  await settled(page);
  const notice = await page.locator('section[aria-label="File"] .notice').textContent();
  expect(notice).toContain("--source FOLDER");
  const first = linesOf(FILE)[0];
  const hot = page.locator('section[aria-label="File"] .bars .value').first();
  expect(await hot.getAttribute("title")).toBe(exactCell("ns", first?.host_total_ns));
  expect(await violations(page)).toEqual([]);
  await close();
});

test("a file that no stack names is refused, and a line that a file lacks is told", async () => {
  const { page } = await open(browser, at(server.url, "source?file=/etc/passwd"));
  await settled(page);
  expect(await page.locator('section[aria-label="File"] [role=alert]').textContent()).toContain("no stack");
  await page.goto(at(server.url, `source?file=${FILE}&line=9999`));
  await page.getByText("The file has no line 9999").waitFor();
  await page.context().close();
});

test("an operator leads to its calls on the timeline, and a selected one by its stack to the line", async () => {
  const { page, close } = await open(browser, at(server.url, "operators?q=aten::addmm"));
  await settled(page);
  await page.locator('tr[data-row="0"]').first().click();
  await page.getByRole("link", { name: "Its calls on the timeline" }).click();
  await page.waitForURL(/#timeline/);
  await settled(page);
  await page.getByRole("button", { name: "Next hit" }).click();
  const frame = page.locator(".timeline-details a[href^='#source']").first();
  await frame.waitFor();
  const [place] = placesOf((await frame.textContent()) ?? "");
  await frame.click();
  await page.waitForURL(/#source/);
  await settled(page);
  const shown = new URLSearchParams(new URL(page.url()).hash.replace(/^#source\?/, ""));
  expect({ file: shown.get("file"), line: Number(shown.get("line")) }).toEqual(place);
  await close();
});

test("every frame of an operator's stack is a link to its line", async () => {
  const stack = String(analyze("operators", RANKS, "--group-by", "stack", "--sort", "host_total_ns").results[0]?.stack);
  const places = placesOf(stack).slice(0, 12);
  expect(places.length).toBeGreaterThan(1);
  const { page, close } = await open(browser, at(server.url, "operators?group=stack&sort=host_total_ns"));
  await settled(page);
  await page.locator('tr[data-row="0"]').first().click();
  const links = page.locator(".row-detail a[href^='#source']");
  expect(await links.allTextContents()).toEqual(places.map(({ file, line }) => `${file}:${line}`));
  const last = places[places.length - 1];
  await links.last().click();
  await page.waitForURL(/#source/);
  await settled(page);
  expect(await page.locator(".source-file").textContent()).toBe(last?.file);
  await close();
});
