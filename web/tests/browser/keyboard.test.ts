// Everything can be done without a mouse.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { settled } from "./browser";
import { RUN, TRACE } from "./inputs";
import { viewerOf } from "./viewer";
import { violations } from "./violations";

const viewer = viewerOf([TRACE, RUN]);

/** Waits until the focus is on this row. */
const focusOn = (page: Page, row: number) =>
  page.waitForFunction((row) => (document.activeElement as HTMLElement | null)?.dataset.row === String(row), row);

test("? has every key, Esc closes it", async () => {
  const { page, close } = await viewer.show();
  await page.keyboard.press("?");
  const dialog = page.getByRole("dialog", { name: "Keys" });
  await dialog.waitFor();
  expect(await dialog.locator("kbd").count()).toBeGreaterThan(8);
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
  await close();
});

test("Ctrl+K goes to a table", async () => {
  const { page, close } = await viewer.show();
  await page.keyboard.press("Control+k");
  await page.getByRole("searchbox", { name: /^Page, table, run/ }).fill("idle caus");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#tables\?.*analysis=idle_causes/);
  await settled(page);
  await close();
});

test("all of a bar's name is read with Tab and the arrow keys", async () => {
  const { page, close } = await viewer.show("kernels");
  const chart = page.locator("figure", { has: page.locator(".bars") });
  const whole = await chart.locator(".bar-name").evaluateAll((all) => all.map((name) => (name as HTMLElement).title));
  const said = () => chart.locator(".pointed").textContent();
  await page.getByLabel("Sort by").focus();
  await page.keyboard.press("Tab");
  await expect.poll(said).toBe(whole[0]);
  await page.keyboard.press("ArrowDown");
  await expect.poll(said).toBe(whole[1]);
  expect(whole[1]?.length).toBeGreaterThan(28);
  await page.keyboard.press("End");
  await expect.poll(said).toBe(whole.at(-1));
  // One stop for all of them: Tab leads behind the chart.
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.closest(".bars") === null)).toBe(true);
  expect(await violations(page)).toEqual([]);
  await close();
});

test("a column that is made wider keeps its width", async () => {
  const { page, close } = await viewer.show("kernels");
  const head = page.getByRole("grid", { name: "All kernels" }).locator("th[data-column=name]");
  const width = async () => (await head.boundingBox())?.width ?? 0;
  const other = async () => (await head.locator("xpath=following-sibling::th[1]").boundingBox())?.width ?? 0;
  const [first, beside] = [await width(), await other()];
  await head.getByRole("button").focus();
  await page.keyboard.press("Shift+ArrowRight");
  await expect.poll(width).toBeCloseTo(first + 14, 0);
  const box = await head.boundingBox();
  if (!box) throw new Error("no head");
  await page.mouse.move(box.x + box.width - 3, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width + 57, box.y + 10, { steps: 4 });
  await page.mouse.up();
  await expect.poll(width).toBeCloseTo(first + 74, 0);
  expect(await other()).toBeCloseTo(beside, 0);
  await page.reload();
  await settled(page);
  expect(await width()).toBeCloseTo(first + 74, 0);
  expect(await violations(page)).toEqual([]);
  await head.locator(".edge").dispatchEvent("dblclick");
  await expect.poll(width).toBeCloseTo(first, 0);
  await close();
});

test("rows are walked through, opened and copied", async () => {
  const { page, close } = await viewer.show("kernels");
  const grid = page.getByRole("grid", { name: "All kernels" });
  await grid.locator('tr[data-row="0"]').focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await focusOn(page, 2);
  const cells = await grid
    .locator('tr[data-row="2"] td')
    .evaluateAll((all) => all.map((cell) => (cell as HTMLElement).title));
  await page.keyboard.press("Control+c");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied.split("\t")[0]).toBe(cells[0]);
  expect(cells).toContain(`${copied.split("\t")[2]} ns`);
  await page.keyboard.press("Enter");
  const detail = page.getByRole("complementary", { name: "The row that is open" });
  await detail.waitFor();
  expect(await detail.textContent()).toContain(cells[0] ?? "?");
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await detail.waitFor({ state: "hidden" });
  await page.keyboard.press("End");
  const last = Number(await grid.getAttribute("aria-rowcount")) - 2;
  await focusOn(page, last);
  await close();
});

test("steps are chosen with the arrows", async () => {
  const { page, close } = await viewer.show("overview?run=1");
  await page.getByRole("button", { name: /^step 0 of rank 0/ }).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.waitForURL(/step=2/);
  await close();
});
