// The timeline, as a person uses it: what is selected, summed up and found is what the command line says.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { NextHit, SliceDetails, TimelineGroup, TimelineInfo, TimelineRow } from "../../src/canvas/model";
import { decodeTiles, tileSpan } from "../../src/canvas/tile";
import { violations } from "./accessibility";
import { at, goTo, launch, open, settled } from "./browser";
import { RUN, TRACE } from "./inputs";
import { analyze, convert, type View, view } from "./stepscope";

let browser: Browser;
let server: View;
beforeAll(async () => {
  browser = await launch();
  server = await view([TRACE, RUN]);
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

/** Asks the server itself, once the run is there. */
async function asked(path: string): Promise<Response> {
  const url = new URL(path, server.url);
  url.searchParams.set("token", new URL(server.url).searchParams.get("token") ?? "");
  for (;;) {
    const response = await fetch(url);
    if (response.status !== 409) return response;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const rowsOf = (groups: readonly TimelineGroup[]): TimelineRow[] =>
  groups.flatMap((group) => [...group.rows, ...rowsOf(group.groups)]);

const kernels = () =>
  analyze("kernels", TRACE).results.map(({ name, count, total_ns }) => ({ name: String(name), count, total_ns }));

/** A kernel whose name no other slice has in its own: searching for it finds nothing else. */
function someKernel() {
  const all = kernels();
  const one = all.find(({ name }) => all.filter((other) => other.name.includes(name)).length === 1 && name.length > 20);
  if (!one) throw new Error("the trace has no such kernel");
  return one;
}

/** A kernel of a name like that, its launch and its operator. */
async function launchedKernel(): Promise<SliceDetails> {
  const { span } = (await (await asked("api/runs/0/timeline")).json()) as TimelineInfo;
  // The last of each: what runs first may have been launched before anything was recorded.
  for (const { name } of kernels()) {
    const query = `q=${encodeURIComponent(name)}&before_ns=${span.end_ns}`;
    const { hit } = (await (await asked(`api/runs/0/search/next?${query}`)).json()) as NextHit;
    if (!hit) continue;
    const details = (await (await asked(`api/runs/0/slices/${hit.id}`)).json()) as SliceDetails;
    if (details.launch && details.op) return details;
  }
  throw new Error("the trace has no kernel with a launch and an operator");
}

const title = (page: Page) => page.locator(".timeline-title code");
const canvas = (page: Page) => page.getByRole("application", { name: /^Timeline/ });

/** Waits until a slice of this name is selected. */
const selected = (page: Page, name: string) => title(page).filter({ hasText: name }).waitFor();

test("counts over all tiles of a level are the slices of the row, at every level", async () => {
  for (const run of [0, 1]) {
    const { groups, span } = (await (await asked(`api/runs/${run}/timeline`)).json()) as TimelineInfo;
    const { version } = (await (await asked(`api/runs/${run}`)).json()) as { version: number };
    const rows = rowsOf(groups).filter(({ kind }) => kind === "slices");
    expect(rows.length).toBeGreaterThan(3);
    for (const level of [14, 20, 26]) {
      const tiles = Math.ceil((span.end_ns + 1) / tileSpan(level));
      const counts = new Map<number, number>();
      const ids = rows.slice(0, 60).map(({ id }) => id);
      for (let first = 0; first < tiles; first += 4) {
        const path = `api/runs/${run}/tiles?v=${version}&rows=${ids.join()}&level=${level}&first=${first}&count=4`;
        const blocks = decodeTiles(await (await asked(path)).arrayBuffer());
        blocks.forEach((tile, nth) => {
          const id = ids[Math.floor(nth / 4)] ?? -1;
          counts.set(id, (counts.get(id) ?? 0) + tile.count.reduce((sum, count) => sum + count, 0));
        });
      }
      for (const row of rows.slice(0, 60)) expect(counts.get(row.id), `${row.name}, ${row.depth}`).toBe(row.slices);
    }
  }
});

test("a search finds as often as the kernel ran, and Enter goes from hit to hit", async () => {
  const { name, count } = someKernel();
  const { page, close } = await open(browser, at(server.url, "timeline"));
  await settled(page);
  await page.keyboard.press("/");
  await page.keyboard.type(name);
  await page.locator(".timeline-search output").filter({ hasText: /^\d/ }).waitFor();
  expect((await page.locator(".timeline-search output").textContent())?.replaceAll(",", "")).toBe(String(count));
  await page.keyboard.press("Enter");
  await selected(page, name);
  expect(new URL(page.url()).hash).toContain("at-name=");
  const position = page.locator(".timeline-search output");
  await position.filter({ hasText: /^1 of/ }).waitFor();
  // The next key comes before the hit of the one before is selected.
  await page.route(/\/slices\/\d+/, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 300));
    await route.continue();
  });
  await page.keyboard.press("Enter");
  await position.filter({ hasText: /^2 of/ }).waitFor();
  await page.keyboard.press("Shift+Enter");
  await position.filter({ hasText: /^1 of/ }).waitFor();
  await page.keyboard.press("Shift+Enter");
  await page
    .locator(".timeline-search output")
    .filter({ hasText: `${count} of` })
    .waitFor();
  await close();
});

test("a hit that is selected before the search has ended keeps its position", async () => {
  const { name } = someKernel();
  const { page, close } = await open(browser, at(server.url, "timeline"));
  await settled(page);
  await page.route(/\/search\?/, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await route.continue().catch(() => {});
  });
  await page.keyboard.press("/");
  await page.keyboard.type(name);
  await page.keyboard.press("Enter");
  await selected(page, name);
  await page.locator(".timeline-search output").filter({ hasText: /^1 of/ }).waitFor();
  await close();
});

test("from a kernel to its launch to its operator, and Back", async () => {
  const kernel = await launchedKernel();
  const { name, rank, start_ns } = kernel.slice;
  const place = new URLSearchParams({ at: String(start_ns), "at-rank": String(rank), "at-name": name });
  const { page, close } = await open(browser, at(server.url, `timeline?${place}`));
  await settled(page);
  await selected(page, name);
  expect(await page.locator("h3:has-text('Operator') + ul button").textContent()).toBe(kernel.op?.name);
  const launch = page.locator("h3:has-text('Launched by') + ul button");
  const call = (await launch.textContent()) ?? "";
  expect(call).toBe(kernel.launch?.name);
  expect(call).toMatch(/cuda|cu[A-Z]|hip/);
  await launch.click();
  await selected(page, call);
  await page.locator("h3:has-text('Launches') + ul button", { hasText: name }).first().waitFor();
  // What is around it: the operator, and what that was called by.
  await page.keyboard.press("ArrowUp");
  await selected(page, kernel.op?.name ?? "?");
  await page.waitForTimeout(400);
  await page.goBack();
  await selected(page, call);
  await page.waitForTimeout(400);
  await page.goBack();
  await selected(page, name);
  // The same by keys: against the arrow to the launch, and along it again.
  await page.keyboard.press("[");
  await selected(page, call);
  await page.keyboard.press("]");
  await selected(page, name);
  await close();
});

test("sums of the whole run are the totals of the kernels", async () => {
  const { span } = (await (await asked("api/runs/0/timeline")).json()) as TimelineInfo;
  const { page, close } = await open(browser, at(server.url, `timeline?range=${span.start_ns}-${span.end_ns + 1}`));
  await settled(page);
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
  const { page, close } = await open(browser, at(server.url, "timeline"));
  await settled(page);
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

test("keys go from slice to slice, mark, zoom and clear", async () => {
  const { page, close } = await open(browser, at(server.url, "timeline?run=1"));
  await settled(page);
  await page.keyboard.press(".");
  await title(page).waitFor();
  const first = page.url();
  await page.keyboard.press(".");
  await page.waitForFunction((before) => location.href !== before, first);
  await page.keyboard.press(",");
  const start = new URLSearchParams(new URL(first).hash.split("?")[1]).get("at");
  await page.waitForURL((url) => new URLSearchParams(url.hash.split("?")[1]).get("at") === start);

  await page.keyboard.press("m");
  await page.waitForURL(/mark=\d+/);
  await page.keyboard.press("m");
  await page.waitForURL((url) => !url.hash.includes("mark="));

  await canvas(page).focus();
  await page.keyboard.down("w");
  await page.waitForTimeout(300);
  await page.keyboard.up("w");
  await page.waitForURL(/view=/);
  await page.keyboard.press("Escape");
  await page.getByText("Click a slice").waitFor();
  await close();
});

test("keys, wheel and double click move the window", async () => {
  const { span } = (await (await asked("api/runs/0/timeline")).json()) as TimelineInfo;
  const length = span.end_ns - span.start_ns;
  const [from, to] = [span.start_ns + Math.round(length / 4), span.start_ns + Math.round(length / 2)];
  const { page, close } = await open(browser, at(server.url, `timeline?view=${from}-${to}`));
  await settled(page);
  const box = await canvas(page).boundingBox();
  if (!box) throw new Error("no canvas");
  // Between rows and at the middle of the window: nothing is hit, and zooming moves neither end more than the other.
  await page.mouse.move(box.x + box.width / 2, box.y + 20);
  /** The window once the address has another one than before. */
  const next = async (before: string): Promise<{ hash: string; start: number; end: number }> => {
    await page.waitForFunction((before) => location.hash !== before, before);
    const hash = new URL(page.url()).hash;
    const [start = 0, end = 0] = (/view=(\d+)-(\d+)/.exec(hash) ?? []).slice(1).map(Number);
    return { hash, start, end };
  };
  const press = async (key: string, before: string) => {
    await page.keyboard.down(key);
    await page.waitForTimeout(150);
    await page.keyboard.up(key);
    return next(before);
  };
  await canvas(page).focus();
  let now = { hash: new URL(page.url()).hash, start: from, end: to };
  for (const [key, start, end] of [
    ["w", 1, -1],
    ["s", -1, 1],
    ["d", 1, 1],
    ["a", -1, -1],
    ["ArrowRight", 1, 1],
    ["ArrowLeft", -1, -1],
  ] as const) {
    const then = await press(key, now.hash);
    expect([key, Math.sign(then.start - now.start), Math.sign(then.end - now.end)]).toEqual([key, start, end]);
    now = then;
  }
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -200);
  await page.keyboard.up("Control");
  const zoomed = await next(now.hash);
  expect(zoomed.end - zoomed.start).toBeLessThan(now.end - now.start);
  // F shows everything again when nothing is selected; a double click where nothing is does so, too.
  await page.keyboard.press("f");
  await page.waitForURL((url) => !url.hash.includes(`view=${zoomed.start}-`));
  await settled(page);
  await close();
});

test("a link shows the same in another window", async () => {
  const { page, close } = await open(browser, at(server.url, `timeline?q=${encodeURIComponent(someKernel().name)}`));
  await settled(page);
  await page.getByRole("button", { name: "Next hit" }).click();
  await title(page).waitFor();
  await canvas(page).focus();
  await page.keyboard.press("f");
  await page.waitForURL(/view=/);
  await page.waitForTimeout(600);
  const hash = new URL(page.url()).hash.slice(1);
  const other = await open(browser, at(server.url, hash));
  await settled(other.page);
  await selected(other.page, (await title(page).textContent()) ?? "");
  await settled(other.page);
  expect(new URL(other.page.url()).hash.slice(1)).toBe(hash);
  expect(await other.page.locator(".timeline-facts").textContent()).toBe(
    await page.locator(".timeline-facts").textContent(),
  );
  await other.close();
  await close();
});

test("what is shown is also a list, which the keyboard reaches", async () => {
  const { page, close } = await open(browser, at(server.url, "timeline?run=1"));
  await settled(page);
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
  const { page, close } = await open(browser, at(server.url, "timeline"));
  await settled(page);
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
  const { span } = (await (await asked("api/runs/0/timeline")).json()) as TimelineInfo;
  const middle = Math.round((span.start_ns + span.end_ns) / 2);
  const { page, close } = await open(browser, at(server.url, `timeline?range=${span.start_ns}-${middle}`));
  await settled(page);
  await page
    .getByText("Export ▾")
    .or(page.getByText("Export", { exact: true }))
    .click();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("Chrome JSON").click()]);
  const text = readFileSync(await download.path()).toString();
  const { traceEvents } = JSON.parse(text) as { traceEvents: { ph: string }[] };
  const slices = traceEvents.filter(({ ph }) => ph === "X").length;
  const sums = (await (await asked(`api/runs/0/sums?start_ns=${span.start_ns}&end_ns=${middle}&by=kind`)).json()) as {
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
    const sent = Buffer.from(await (await asked(`api/runs/0/export?format=${format}`)).arrayBuffer());
    expect([format, sent.equals(readFileSync(converted))]).toEqual([format, true]);
  }
  rmSync(folder, { recursive: true });
});

test("Perfetto gets the trace, once it listens", async () => {
  const { page, context } = await open(browser, at(server.url, "timeline"));
  await settled(page);
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

test("a slice of a link that is not there is said, and the page goes on", async () => {
  const { page } = await open(browser, at(server.url, "timeline?at=12345&at-rank=0&at-name=nothing"));
  await page.getByRole("alert").waitFor();
  expect(await page.getByRole("alert").textContent()).toContain("not in this run");
  await goTo(page, "timeline");
  await page.keyboard.press(".");
  await title(page).waitFor();
});

test("a mark is set where the pointer is, also when a slice is selected", async () => {
  const { page, close } = await open(browser, at(server.url, "timeline"));
  await settled(page);
  const canvas = page.locator("canvas[role=application]");
  await canvas.focus();
  await page.keyboard.press(".");
  await page.waitForURL(/at=\d+/);
  const box = await canvas.boundingBox();
  if (!box) throw new Error("there is no canvas");
  for (const share of [0.3, 0.6]) {
    await page.mouse.move(box.x + box.width * share, box.y + 100);
    await page.keyboard.press("m");
    await page.waitForFunction((count) => location.hash.split("mark=").length > count, share === 0.3 ? 1 : 2);
  }
  const marks = [...page.url().matchAll(/mark=(\d+)/g)].map(([, time]) => Number(time));
  expect(new Set(marks).size).toBe(2);
  await close();
});
