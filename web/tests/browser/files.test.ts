// What is saved and copied has the rows that are shown, with every digit.

import { readFileSync } from "node:fs";
import type { Download, Page } from "playwright-core";
import { expect, test } from "vitest";
import { RUN } from "./inputs";
import { analyze, report } from "./stepscope";
import { viewerOf } from "./viewer";

const viewer = viewerOf([RUN]);

const PLACE = "operators?where=count:ge:100&sort=count";
const expected = () => analyze("operators", RUN, "--sort", "count").results.filter((row) => Number(row.count) >= 100);

async function saved(page: Page, link: string): Promise<Buffer> {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByText(link, { exact: true }).click()]);
  return readFileSync(await (download as Download).path());
}

test("files have all matching rows, in the order that is shown", async () => {
  const names = expected().map((row) => String(row.name));
  const { page, close } = await viewer.show(PLACE);
  await page.getByText("Copy and save").click();
  const csv = (await saved(page, "Save as CSV")).toString().trimEnd().split("\n");
  expect(csv.slice(1).map((line) => line.split(",")[0]?.replaceAll('"', ""))).toEqual(names);
  const tsv = (await saved(page, "Save as TSV")).toString().trimEnd().split("\n");
  expect(tsv.slice(1).map((line) => line.split("\t")[0])).toEqual(names);
  const json = JSON.parse((await saved(page, "Save as JSON")).toString()) as { results: { name: string }[] };
  expect(json.results.map((row) => row.name)).toEqual(names);
  expect((await saved(page, "Save as Parquet")).subarray(0, 4).toString()).toBe("PAR1");
  expect((await saved(page, "Save as Markdown")).toString()).toContain("| name |");
  await page.getByRole("button", { name: "Copy as TSV" }).click();
  await page.getByText("Copied").waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied.trimEnd().split("\n")).toEqual(tsv);
  await close();
});

test("charts are saved as pictures that stand alone", async () => {
  const { page, close } = await viewer.show();
  await page.getByText("Save", { exact: true }).click();
  const svg = (await saved(page, "As SVG")).toString();
  expect(svg).toMatch(/^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
  const isSound = (text: string) =>
    !new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror");
  expect(await page.evaluate(isSound, svg)).toBe(true);
  expect(svg).not.toMatch(/var\(|light-dark|https?:\/\/(?!www\.w3\.org)/);
  expect(svg.match(/role="button"/g)?.length).toBe(report(RUN).steps?.count);
  expect((await saved(page, "As PNG")).subarray(1, 4).toString()).toBe("PNG");
  await close();
});

test("the report is one page, and JSON as the command prints it", async () => {
  const { page, close } = await viewer.show();
  expect((await saved(page, "This report as one HTML page")).toString()).toMatch(/^<!DOCTYPE html>/);
  const json = JSON.parse((await saved(page, "as JSON")).toString()) as { verdict: string[] };
  expect(json.verdict).toEqual(report(RUN).verdict);
  await close();
});
