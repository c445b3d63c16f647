// The timeline, as a user moves on it: what is selected and found is what the command line says, and Back and links bring it
// back.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { TimelineInfo } from "../../src/canvas/model";
import { at, goTo, open, settled } from "./browser";
import { RUN, TRACE } from "./inputs";
import { asked, canvas, launchedKernel, selected, someKernel, title } from "./timeline_page";
import { viewerOf } from "./viewer";
import { violations } from "./violations";

const viewer = viewerOf([TRACE, RUN]);

/** Types a name: its beginning key by key, and the many characters after it at once. */
async function typeName(page: Page, name: string): Promise<void> {
  await page.keyboard.type(name.slice(0, 8));
  await page.keyboard.insertText(name.slice(8));
}

test("a search finds as often as the kernel ran, and Enter goes from hit to hit", async () => {
  const { name, count } = someKernel();
  const { page, close } = await viewer.show("timeline");
  await page.keyboard.press("/");
  await typeName(page, name);
  // What is found of the first letters may be shown before.
  const found = async () => (await page.locator(".timeline-search output").textContent())?.replaceAll(",", "");
  await expect.poll(found, { timeout: 10_000 }).toBe(String(count));
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
  const { page, close } = await viewer.show("timeline");
  await page.route(/\/search\?/, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await route.continue().catch(() => {});
  });
  await page.keyboard.press("/");
  await typeName(page, name);
  await page.keyboard.press("Enter");
  await selected(page, name);
  await page.locator(".timeline-search output").filter({ hasText: /^1 of/ }).waitFor();
  await close();
});

test("from a kernel to its launch to its operator, and Back", async () => {
  const kernel = await launchedKernel(viewer.server);
  const { name, rank, start_ns } = kernel.slice;
  const place = new URLSearchParams({ at: String(start_ns), "at-rank": String(rank), "at-name": name });
  const { page, close } = await viewer.show(`timeline?${place}`);
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
  await page.goBack();
  await selected(page, call);
  await page.goBack();
  await selected(page, name);
  // The same by keys: against the arrow to the launch, and along it again.
  await page.keyboard.press("[");
  await selected(page, call);
  await page.keyboard.press("]");
  await selected(page, name);
  await close();
});

test("keys go from slice to slice, mark, zoom and clear", async () => {
  const { page, close } = await viewer.show("timeline?run=1");
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

test("keys act on the slice that is selected, also while the panel still shows the one before", async () => {
  const { page, close } = await viewer.show("timeline?run=1");
  await page.keyboard.press(".");
  await title(page).waitFor();
  const first = page.url();
  let answer = () => {};
  const isAsked = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route(/\/slices\/\d+/, async (route) => {
    await isAsked;
    await route.continue();
  });
  await page.keyboard.press(".");
  await page.waitForFunction((before) => location.href !== before, first);
  const second = new URLSearchParams(new URL(page.url()).hash.split("?")[1]).get("at");
  await page.keyboard.press("m");
  await page.waitForURL((url) => new URLSearchParams(url.hash.split("?")[1]).get("mark") === second);
  answer();
  await close();
});

test("keys, wheel and double click move the window", async () => {
  const { span } = (await (await asked(viewer.server, "api/runs/0/timeline")).json()) as TimelineInfo;
  const length = span.end_ns - span.start_ns;
  const [from, to] = [span.start_ns + Math.round(length / 4), span.start_ns + Math.round(length / 2)];
  const { page, close } = await viewer.show(`timeline?view=${from}-${to}`);
  const box = await canvas(page).boundingBox();
  if (!box) throw new Error("no canvas");
  // Between rows and at the middle of the window: nothing is hit, and zooming moves neither end more than the other.
  await page.mouse.move(box.x + box.width / 2, box.y + 20);
  /** The window once the address has another one than before, and the movement has come to its end. */
  const next = async (before: string): Promise<{ hash: string; start: number; end: number }> => {
    await page.waitForFunction((before) => location.hash !== before, before);
    for (let last = ""; last !== page.url(); await page.waitForTimeout(300)) last = page.url();
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
  const { page, close } = await viewer.show(`timeline?q=${encodeURIComponent(someKernel().name)}`);
  await page.getByRole("button", { name: "Next hit" }).click();
  await title(page).waitFor();
  await canvas(page).focus();
  await page.keyboard.press("f");
  await page.waitForURL(/view=/);
  const hash = new URL(page.url()).hash.slice(1);
  const other = await open(viewer.browser, at(viewer.server.url, hash));
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

test("a slice of a link that is not there is said, and the page goes on", async () => {
  const { page } = await open(viewer.browser, at(viewer.server.url, "timeline?at=12345&at-rank=0&at-name=nothing"));
  await page.getByRole("alert").waitFor();
  expect(await page.getByRole("alert").textContent()).toContain("not in this run");
  await goTo(page, "timeline");
  await page.keyboard.press(".");
  await title(page).waitFor();
});

test("a mark is set where the pointer is, also when a slice is selected", async () => {
  const { page, close } = await viewer.show("timeline");
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

/** What the labels beside the canvas say. */
const labels = (page: Page) => page.locator(".timeline-label .timeline-name").allTextContents();

test("a filter keeps the tracks whose name or group matches, and the link has it", async () => {
  const { page, close } = await viewer.show("timeline?run=1");
  await page.locator(".timeline-name").first().waitFor();
  const before = await labels(page);
  const field = page.getByRole("searchbox", { name: "Keep tracks by name or group" });
  const track = before.at(-1) ?? "";
  expect(before.filter((label) => label === track)).toEqual([track]);
  await field.fill(track);
  await page.waitForURL(/tracks=/);
  await expect.poll(() => labels(page)).not.toEqual(before);
  const kept = await labels(page);
  expect(kept.length).toBeLessThan(before.length);
  expect(kept.at(-1)).toBe(track);
  const other = await open(viewer.browser, at(viewer.server.url, new URL(page.url()).hash.slice(1)));
  await settled(other.page);
  await expect.poll(() => labels(other.page)).toEqual(kept);
  await other.close();
  await field.fill("no such track");
  await page.locator(".timeline-filter output", { hasText: /^no track of \d+$/ }).waitFor();
  expect(await labels(page)).toEqual([]);
  await field.press("Escape");
  await page.waitForURL((url) => !url.hash.includes("tracks="));
  await expect.poll(() => labels(page)).toEqual(before);
  await close();
});

test("a slice whose track the filter hides says so, and shows all tracks again", async () => {
  const { page, close } = await viewer.show("timeline?run=1");
  await page.keyboard.press(".");
  await title(page).waitFor();
  expect(await page.getByText("The filter of tracks hides its track.").count()).toBe(0);
  await page.getByRole("searchbox", { name: "Keep tracks by name or group" }).fill("no such track");
  await page.getByText("The filter of tracks hides its track.").waitFor();
  await page.getByRole("button", { name: "Show all tracks" }).click();
  await page.waitForURL((url) => !url.hash.includes("tracks="));
  expect((await labels(page)).length).toBeGreaterThan(0);
  await close();
});

test.each(["light", "dark"] as const)("labels and steps have the ground of panels, %s", async (colorScheme) => {
  const { page, close } = await viewer.show("timeline?run=1", { colorScheme });
  const [ground, panel] = await page.evaluate(() => {
    const probe = document.createElement("span");
    probe.style.background = "var(--panel)";
    document.body.append(probe);
    const panel = getComputedStyle(probe).backgroundColor;
    probe.remove();
    const labels = document.querySelector(".timeline-labels");
    return [labels && getComputedStyle(labels).backgroundColor, panel];
  });
  expect(ground).toBe(panel);
  await close();
});

test("marks have notes, which are text, and the link keeps both", async () => {
  const { page, close } = await viewer.show("timeline?run=1&mark=2000000000&mark=1500000000");
  await page.getByRole("tab", { name: "Marks" }).click();
  const note = page.getByRole("textbox", { name: "Note of mark 1" });
  // Letters that are keys elsewhere: none of them marks or moves.
  await note.pressSequentially("m: <b>data</b> & more");
  const marks = (url: string) => new URLSearchParams(new URL(url).hash.split("?")[1]).getAll("mark");
  await expect.poll(() => marks(page.url())).toEqual(["2000000000", "1500000000:m: <b>data</b> & more"]);
  expect(await violations(page)).toEqual([]);
  const other = await open(viewer.browser, at(viewer.server.url, new URL(page.url()).hash.slice(1)));
  await settled(other.page);
  await other.page.getByRole("tab", { name: "Marks" }).click();
  expect(await other.page.getByRole("textbox", { name: "Note of mark 1" }).inputValue()).toBe("m: <b>data</b> & more");
  expect(await other.page.getByRole("textbox", { name: "Note of mark 2" }).inputValue()).toBe("");
  await other.page.getByRole("button", { name: "Go to mark 2" }).click();
  await other.page.waitForURL(/view=/);
  const [start, end] = (/view=(\d+)-(\d+)/.exec(other.page.url()) ?? []).slice(1).map(Number);
  expect((start ?? 0) <= 2e9 && 2e9 <= (end ?? 0)).toBe(true);
  await other.page.getByRole("button", { name: "Remove mark 1" }).click();
  await expect.poll(() => marks(other.page.url())).toEqual(["2000000000"]);
  await other.close();
  await close();
});
