// The address has everything that is chosen: Back goes through it, and a link brings it back.

import { expect, test } from "vitest";
import { at, open, settled } from "./browser";
import { RUN, TRACE } from "./inputs";
import { analyze } from "./stepscope";
import { shownColumns, shownRows } from "./table";
import { viewerOf } from "./viewer";

const viewer = viewerOf([RUN, TRACE]);

test("the token leaves the address bar, and reloading still works", async () => {
  const { page, close } = await viewer.show();
  expect(new URL(page.url()).search).toBe("");
  await page.reload();
  await settled(page);
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByText("Copied").waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  expect(new URL(link).search).toBe(new URL(viewer.server.url).search);
  await close();
});

test("without the token the page says what to open", async () => {
  const { page } = await open(viewer.browser, new URL(viewer.server.url).origin);
  await page.getByRole("alert").waitFor();
  expect(await page.getByRole("alert").textContent()).toContain("stepscope view");
});

test("order, search and filters are the server's, and stand in the address", async () => {
  const all = analyze("operators", RUN).results;
  const { page, close } = await viewer.show("operators");
  await page.getByRole("columnheader", { name: "count" }).getByRole("button").click();
  await page.getByRole("columnheader", { name: "count" }).and(page.locator("[aria-sort=descending]")).waitFor();
  await settled(page);
  const column = (await shownColumns(page, "All operators")).indexOf("count");
  const counts = (await shownRows(page, "All operators")).map((row) => Number(row[column]?.exact));
  expect(counts).toEqual(all.map((row) => Number(row.count)).sort((a, b) => b - a));

  await page.getByRole("searchbox", { name: "Search rows" }).fill("BACKWARD");
  await page.waitForURL(/q=BACKWARD/);
  await settled(page);
  const backward = all.filter((row) => /backward/i.test(`${row.name} ${row.category}`));
  expect((await shownRows(page, "All operators")).length).toBe(backward.length);

  const again = await open(viewer.browser, at(viewer.server.url, new URL(page.url()).hash.slice(1)));
  await settled(again.page);
  expect(await shownRows(again.page, "All operators")).toEqual(await shownRows(page, "All operators"));
  await again.close();
  await close();
});

test("a filter is added by its form and taken away by its chip", async () => {
  const all = analyze("operators", RUN).results;
  const { page, close } = await viewer.show("operators");
  await page.getByText("Filter", { exact: true }).click();
  await page.getByRole("combobox", { name: "Column", exact: true }).selectOption("count");
  await page.getByRole("combobox", { name: "Compared", exact: true }).selectOption("ge");
  await page.getByRole("textbox", { name: "Value" }).fill("100");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.waitForURL(/where=count%3Age%3A100/);
  await settled(page);
  const often = all.filter((row) => Number(row.count) >= 100);
  expect(often.length).toBeGreaterThan(0);
  expect((await shownRows(page, "All operators")).length).toBe(often.length);
  await page.getByRole("button", { name: /Remove the filter/ }).click();
  await settled(page);
  expect((await shownRows(page, "All operators")).length).toBe(all.length);
  await close();
});

test("a filter that makes no sense is an error that says so, and can be taken away", async () => {
  const { page } = await open(viewer.browser, at(viewer.server.url, "operators?where=nothing:eq:1"));
  await page.getByRole("alert").first().waitFor();
  expect(await page.getByRole("alert").first().textContent()).toContain("nothing");
  await page.getByRole("button", { name: "Try again" }).first().click();
  await page.getByRole("grid", { name: "All operators" }).waitFor();
});

test("Back goes through pages, steps and orders", async () => {
  const { page, close } = await viewer.show();
  await page.getByRole("combobox", { name: "Step", exact: true }).selectOption("3");
  await settled(page);
  await page.getByRole("link", { name: "Operators", exact: true }).click();
  await settled(page);
  expect(page.url()).toMatch(/#operators\?(run=[^&]+&)?step=3$/);
  await page.getByRole("columnheader", { name: "count" }).getByRole("button").click();
  await page.waitForURL(/sort=count/);
  await page.goBack();
  expect(page.url()).toMatch(/#operators\?(run=[^&]+&)?step=3$/);
  await page.goBack();
  expect(page.url()).toMatch(/#overview\?(run=[^&]+&)?step=3$/);
  await settled(page);
  expect(await page.getByRole("combobox", { name: "Step", exact: true }).inputValue()).toBe("3");
  await page.goBack();
  await settled(page);
  expect(await page.getByRole("combobox", { name: "Step", exact: true }).inputValue()).toBe("");
  await close();
});

test("a step that is chosen in the chart is the step of every page", async () => {
  const { page, close } = await viewer.show();
  await page.getByRole("button", { name: /^step 5 of rank 0/ }).click();
  await page.waitForURL(/step=5/);
  await page.getByRole("link", { name: "Operators", exact: true }).click();
  await settled(page);
  const expected = analyze("operators", RUN, "--step", "5").results;
  expect((await shownRows(page, "All operators")).length).toBe(expected.length);
  await close();
});

test("another run is another choice, in the address", async () => {
  const { page, close } = await viewer.show();
  await page.getByRole("combobox", { name: "Run", exact: true }).selectOption({ index: 1 });
  await page.waitForURL(/run=[ah]100_/);
  await page.getByRole("link", { name: "Kernels", exact: true }).click();
  await settled(page);
  expect((await shownRows(page, "All kernels")).length).toBe(analyze("kernels", TRACE).results.length);
  await close();
});

test("the theme is kept, and is what the page looks like", async () => {
  const { page, close } = await viewer.show("", { colorScheme: "light" });
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.getByRole("combobox", { name: "Theme", exact: true }).selectOption("dark");
  const dark = await background();
  expect(dark).not.toBe(light);
  await page.reload();
  await settled(page);
  expect(await background()).toBe(dark);
  await close();
});
