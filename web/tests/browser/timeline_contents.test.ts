// What the timeline shows: rows, sums, lists and exports have the slices of the command line.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { TimelineInfo } from "../../src/canvas/model";
import { decodeTiles, tileSpan } from "../../src/canvas/tile";
import { settled } from "./browser";
import { RUN, TRACE } from "./inputs";
import { convert } from "./stepscope";
import { asked, canvas, kernels, rowsOf, selected } from "./timeline_page";
import { viewerOf } from "./viewer";
import { violations } from "./violations";

const viewer = viewerOf([TRACE, RUN]);

test("counts over all tiles of a level are the slices of the row, at every level", async () => {
  for (const run of [0, 1]) {
    const { groups, span } = (await (await asked(viewer.server, `api/runs/${run}/timeline`)).json()) as TimelineInfo;
    const { version } = (await (await asked(viewer.server, `api/runs/${run}`)).json()) as { version: number };
    const rows = rowsOf(groups).filter(({ kind }) => kind === "slices");
    expect(rows.length).toBeGreaterThan(3);
    for (const level of [14, 20, 26]) {
      const tiles = Math.ceil((span.end_ns + 1) / tileSpan(level));
      const counts = new Map<number, number>();
      const ids = rows.slice(0, 60).map(({ id }) => id);
      for (let first = 0; first < tiles; first += 4) {
        const path = `api/runs/${run}/tiles?v=${version}&rows=${ids.join()}&level=${level}&first=${first}&count=4`;
        const blocks = decodeTiles(await (await asked(viewer.server, path)).arrayBuffer());
        blocks.forEach((tile, nth) => {
          const id = ids[Math.floor(nth / 4)] ?? -1;
          counts.set(id, (counts.get(id) ?? 0) + tile.count.reduce((sum, count) => sum + count, 0));
        });
      }
      for (const row of rows.slice(0, 60)) expect(counts.get(row.id), `${row.name}, ${row.depth}`).toBe(row.slices);
    }
  }
});

test("sums of the whole run are the totals of the kernels", async () => {
  const { span } = (await (await asked(viewer.server, "api/runs/0/timeline")).json()) as TimelineInfo;
  const { page, close } = await viewer.show(`timeline?range=${span.start_ns}-${span.end_ns + 1}`);
  await page.getByRole("tab", { name: "Range" }).click();
  await page.locator(".timeline-rows tbody tr").first().waitFor();
  const rows = await page.locator(".timeline-rows tbody tr").evaluateAll((all) =>
    all.map((row) => ({
      name: row.querySelector("th code")?.textContent ?? "",
      values: [...row.querySelectorAll("td .value")].map((value) => (value as HTMLElement).title),
    })),
  );
  const sums = new Map(rows.map(({ name, values }) => [name, values]));
  let compared = 0;
  for (const kernel of kernels()) {
    const [slices, total] = sums.get(kernel.name) ?? [];
    if (slices === undefined) continue;
    compared++;
    expect([slices, total], kernel.name).toEqual([String(kernel.count), `${kernel.total_ns} ns`]);
  }
  expect(compared).toBeGreaterThan(3);
  await close();
});

test("a range is dragged over the ruler, and every page can be of it", async () => {
  const { page, close } = await viewer.show("timeline");
  const box = await canvas(page).boundingBox();
  if (!box) throw new Error("no canvas");
  await page.mouse.move(box.x + 100, box.y + 8);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y + 8, { steps: 4 });
  await page.mouse.up();
  await page.waitForURL(/range=\d+-\d+/);
  await page.locator(".timeline-rows tbody tr").first().waitFor();
  await page.getByRole("button", { name: "All pages: only this range" }).click();
  await page.waitForURL(/window=\d+-\d+/);
  await page.getByRole("button", { name: "All pages: everything again" }).click();
  expect(page.url()).not.toContain("window=");
  await close();
});

test("a range that is dragged over rows is of these rows in another tab, too", async () => {
  const { page, close } = await viewer.show("timeline");
  const label = page.locator(".timeline-label", { hasText: "Stream 7" }).first();
  const [row, box] = [await label.boundingBox(), await canvas(page).boundingBox()];
  if (!row || !box) throw new Error("there is no such row");
  const y = row.y + row.height / 2;
  await page.mouse.move(box.x + 100, y);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, y + 2, { steps: 4 });
  await page.mouse.up();
  await page.waitForURL(/range-row=/);
  const words = (page: Page) => page.locator(".timeline-range span").first();
  const sums = (page: Page) => page.locator(".timeline-rows caption");
  await words(page)
    .filter({ hasText: /, 1 row$/ })
    .waitFor();
  await sums(page).waitFor();
  const said = [await words(page).textContent(), await sums(page).textContent()];
  await page.reload();
  await settled(page);
  await sums(page).waitFor();
  expect([await words(page).textContent(), await sums(page).textContent()]).toEqual(said);
  // Without a range there are no rows of one.
  await canvas(page).focus();
  await page.keyboard.press("Escape");
  await page.waitForURL((url) => !url.hash.includes("range"));
  await close();
});

test("what is shown is also a list, which the keyboard reaches", async () => {
  const { page, close } = await viewer.show("timeline?run=1");
  await page.keyboard.press("l");
  const row = page.locator(".timeline-rows tbody tr").first();
  await row.waitFor();
  const name = (await row.locator("th").textContent()) ?? "";
  await row.getByRole("button").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("tab", { name: "Slice" }).click();
  await selected(page, name);
  expect(await violations(page)).toEqual([]);
  await close();
});

test("groups close and open, tracks are pinned and found, and the address has it", async () => {
  const { page, close } = await viewer.show("timeline");
  const labels = page.locator(".timeline-label");
  const before = await labels.count();
  await page.getByRole("button", { name: /^Close Rank 0/ }).click();
  await page.waitForURL(/shut=/);
  await expect.poll(() => labels.count()).toBeLessThan(before);
  await page.keyboard.press("Control+p");
  await page.getByRole("searchbox", { name: "Part of a track's name" }).fill("stream 7");
  await page.keyboard.press("Enter");
  const label = page.locator(".timeline-label", { hasText: "Stream 7" }).first();
  await label.waitFor();
  expect(page.url()).not.toContain("shut=");
  await label.hover();
  await label.getByRole("button", { name: /^Pin/ }).click();
  await page.locator(".timeline-label-area.pinned .timeline-label").first().waitFor();
  await page.reload();
  await settled(page);
  await page.locator(".timeline-label-area.pinned .timeline-label", { hasText: "Stream 7" }).waitFor();
  await close();
});

test("what is exported lies in the range", async () => {
  const { span } = (await (await asked(viewer.server, "api/runs/0/timeline")).json()) as TimelineInfo;
  const middle = Math.round((span.start_ns + span.end_ns) / 2);
  const { page, close } = await viewer.show(`timeline?range=${span.start_ns}-${middle}`);
  await page
    .getByText("Export ▾")
    .or(page.getByText("Export", { exact: true }))
    .click();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("Chrome JSON").click()]);
  const text = readFileSync(await download.path()).toString();
  const { traceEvents } = JSON.parse(text) as { traceEvents: { ph: string }[] };
  const slices = traceEvents.filter(({ ph }) => ph === "X").length;
  const sums = (await (
    await asked(viewer.server, `api/runs/0/sums?start_ns=${span.start_ns}&end_ns=${middle}&by=kind`)
  ).json()) as {
    slices: number;
  };
  expect(slices).toBe(sums.slices);
  await close();
});

test("a whole trace that is sent is the file that the command line writes", async () => {
  const folder = mkdtempSync(join(tmpdir(), "stepscope-export-"));
  for (const [format, ending] of [
    ["perfetto", "pftrace"],
    ["chrome", "json"],
  ] as const) {
    const converted = join(folder, `trace.${ending}`);
    convert(TRACE, converted);
    const sent = Buffer.from(await (await asked(viewer.server, `api/runs/0/export?format=${format}`)).arrayBuffer());
    expect([format, sent.equals(readFileSync(converted))]).toEqual([format, true]);
  }
  rmSync(folder, { recursive: true });
});

test("Perfetto gets the trace, once it listens", async () => {
  const { page, context } = await viewer.show("timeline");
  // What stands for Perfetto here does what it does: it answers when it listens, and takes a buffer.
  const script = `onmessage = ({ data, source, origin }) => {
    if (data === "PING") source.postMessage("PONG", origin);
    else document.title = data.perfetto.title + " " + data.perfetto.buffer.byteLength;
  }`;
  await context.route("https://ui.perfetto.dev/**", (route) =>
    route.fulfill({ contentType: "text/html", body: `<title>-</title><script>${script}</script>` }),
  );
  await page.getByText("Export", { exact: true }).click();
  const [popup] = await Promise.all([
    page.waitForEvent("popup"),
    page.getByRole("button", { name: "Open in Perfetto" }).click(),
  ]);
  await popup.waitForFunction(() => document.title !== "-");
  expect(Number((await popup.title()).split(" ").at(-1))).toBeGreaterThan(1000);
  await context.close();
});
