// Rows of devices that are made of results say what the command says.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { counterText } from "../../src/canvas/draw/counters";
import { formatRatio } from "../../src/format/units";
import { RUN, TRACE } from "./inputs";
import { analyze } from "./stepscope";
import { canvas, selected } from "./timeline_page";
import { viewerOf } from "./viewer";
import { violations } from "./violations";

const viewer = viewerOf([TRACE, RUN]);

/** What is said of a place on the row with this label, `part` of the way from the left. */
async function hovered(page: Page, label: string, part = 0.5): Promise<string> {
  const row = await page.locator(".timeline-label", { hasText: label }).first().boundingBox();
  const box = await canvas(page).boundingBox();
  if (!row || !box) throw new Error("no such row");
  const tip = page.locator(".timeline-tip");
  const said = async () => {
    await page.mouse.move(box.x + box.width * part - 3, row.y + row.height / 2);
    await page.mouse.move(box.x + box.width * part, row.y + row.height / 2);
    return tip.count();
  };
  // What the row is made of comes after the row, and says nothing to a pointer that rests.
  await expect.poll(said, { timeout: 30_000 }).toBe(1);
  return (await tip.textContent()) ?? "";
}

test("pointing at the use of a device says the bucket's values", async () => {
  // A window of 1.3 ms is asked for in buckets of 10 µs, each some pixels wide.
  const buckets = analyze("gpu_utilization_curve", TRACE, "--bucket", "0.01").results;
  const bucket = buckets[Math.floor(buckets.length / 2)];
  if (!bucket) throw new Error("the trace has no bucket");
  const middle = Number(bucket.start_ns) + Number(bucket.span_ns) / 2;
  const { page, close } = await viewer.show(`timeline?view=${middle - 650_000}-${middle + 650_000}`);
  const said = await hovered(page, "Utilization");
  const [use, full] = [bucket.utilization_ratio, bucket.sm_efficiency_ratio].map((ratio) =>
    ratio === null ? null : formatRatio(Number(ratio)),
  );
  expect(said).toBe(full === null ? `Utilization: ${use}` : `Utilization: ${use}, SM efficiency (estimated): ${full}`);
  await close();
});

test("pointing at the queue of a device says how many device events wait", async () => {
  // In the same window and buckets as above, where most wait.
  const buckets = analyze("queue_length_curve", TRACE, "--bucket", "0.01").results;
  const bucket = buckets.reduce((most, next) => (Number(next.length_max) > Number(most.length_max) ? next : most));
  const middle = Number(bucket.start_ns) + Number(bucket.span_ns) / 2;
  const { page, close } = await viewer.show(`timeline?view=${middle - 650_000}-${middle + 650_000}`);
  const said = await hovered(page, "Queue length");
  const [mean, least, most] = [bucket.length_mean, bucket.length_min, bucket.length_max].map(Number);
  const text = (value = 0) => counterText(value, "count");
  expect(most).toBeGreaterThan(0);
  expect(said).toBe(
    least === most
      ? `Queue length: ${text(mean)}`
      : `Queue length: ${text(mean)}, between ${text(least)} and ${text(most)}`,
  );
  await close();
});

test("pointing at a gap says its cause and length, and the filter of tracks keeps such rows", async () => {
  const [gap] = analyze("idle_gaps", TRACE).results;
  if (!gap) throw new Error("the trace has no gap");
  const [start, length] = [Number(gap.start_ns), Number(gap.idle_ns)];
  const view = `${start - length}-${start + 2 * length}`;
  const { page, close } = await viewer.show(`timeline?view=${view}&tracks=idle+gaps`);
  await expect.poll(() => page.locator(".timeline-label:not(.header)").count()).toBe(1);
  const said = await hovered(page, "Longest idle gaps");
  expect(said).toContain("host");
  expect(said).not.toContain("_bound");
  await close();
});

test("a piece of the critical path leads to its slice, by a click and by keys", async () => {
  const pieces = analyze("critical_path_pieces", TRACE).results.filter(({ name }) => name !== null);
  const piece = pieces.reduce((most, next) => (Number(next.path_ns) > Number(most.path_ns) ? next : most));
  const [start, length] = [Number(piece.start_ns), Number(piece.path_ns)];
  const view = `${start - length}-${start + 2 * length}`;
  const { page, close } = await viewer.show(`timeline?view=${view}`);
  const said = await hovered(page, "Critical path");
  expect(said).toContain(String(piece.name).slice(0, 100));
  await page.mouse.down();
  await page.mouse.up();
  const hash = () => new URLSearchParams(new URL(page.url()).hash.split("?")[1]);
  await expect.poll(() => hash().get("at")).toBe(String(piece.slice_start_ns));
  await selected(page, String(piece.name).slice(0, 100));
  // The next piece of another slice, wherever the piece that was clicked is among those of its slice.
  const later = pieces.filter((next) => Number(next.start_ns) > start);
  const next = later.reduce((first, other) => (Number(other.start_ns) < Number(first.start_ns) ? other : first));
  await page.keyboard.press("n");
  await expect.poll(() => hash().get("at")).toBe(String(next.slice_start_ns));
  await page.keyboard.press("b");
  await expect.poll(() => hash().get("at")).toBe(String(piece.slice_start_ns));
  await close();
});

test("pieces of the critical path in a range are a table, which keys lead through and which marks what is selected", async () => {
  const all = analyze("critical_path_pieces", TRACE).results;
  const middle = Number(all[Math.floor(all.length / 2)]?.start_ns);
  const [from, to] = [middle - 200_000, middle + 200_000];
  const pieces = all.filter((row) => Number(row.end_ns) > from && Number(row.start_ns) < to);
  const piece = pieces.find(({ name }) => name !== null);
  if (!piece) throw new Error("no piece in the range has a slice");
  const { page, close } = await viewer.show(`timeline?range=${from}-${to}`);
  await page.getByRole("tab", { name: "Events" }).click();
  await page.getByRole("combobox", { name: "Events" }).selectOption("pieces of the critical path");
  const rows = page.locator("#timeline-panel tbody tr");
  await expect.poll(() => rows.count()).toBe(pieces.length);
  const shown = await rows.evaluateAll((all) =>
    all.map((row) => [...row.querySelectorAll<HTMLElement>(".value")].map(({ title }) => title.replace(/\D/g, ""))),
  );
  expect(shown).toEqual(pieces.map((row) => [String(row.start_ns), String(row.path_ns)]));
  expect(await rows.locator("th").allTextContents()).toEqual(
    pieces.map(({ name }) => (name === null ? "nothing was recorded" : String(name).slice(0, 300))),
  );
  await rows.getByRole("button").first().focus();
  await page.keyboard.press("Enter");
  const hash = () => new URLSearchParams(new URL(page.url()).hash.split("?")[1]);
  await expect.poll(() => hash().get("at")).toBe(String(piece.slice_start_ns));
  const marked = page.locator("#timeline-panel tr[aria-current=true] th");
  await expect.poll(() => marked.first().textContent()).toBe(String(piece.name).slice(0, 300));
  await expect
    .poll(() => marked.count())
    .toBe(
      pieces.filter(({ name, slice_start_ns }) => name === piece.name && slice_start_ns === piece.slice_start_ns)
        .length,
    );
  expect(await violations(page)).toEqual([]);
  await close();
});

test("a run without a device has no such rows", async () => {
  const { page, close } = await viewer.show("timeline?run=1");
  expect(
    await page.locator(".timeline-label", { hasText: /Critical path|Utilization|Queue length|idle gaps/ }).count(),
  ).toBe(0);
  await close();
});
