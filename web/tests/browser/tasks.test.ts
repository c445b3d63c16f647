// What a person opens the pages for, with how many clicks it takes at most.

import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exactCell } from "../../src/format/cell";
import { formatNs } from "../../src/format/units";
import { goTo, IS_FIREFOX, launch, open, pagesOf, settled, type Watched } from "./browser";
import { STRANGE, TRACE } from "./inputs";
import { served } from "./served";
import { analyze, type View } from "./stepscope";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const titles = (page: Page, selector: string) =>
  page.locator(selector).evaluateAll((all) => all.map((element) => (element as HTMLElement).title));

describe.each(STRANGE.length > 0 ? STRANGE : [TRACE])("%s", (input) => {
  let server: View;
  let watched: Watched;
  beforeAll(async () => {
    server = await served([input]);
    watched = await open(browser, server.url, { viewport: { width: 1440, height: 900 } });
    await settled(watched.page);
  });
  afterAll(async () => {
    await watched.close();
    await server.stop();
  });

  /** The page by one click in the list of pages. */
  const toPage = async (name: string) => {
    await watched.page.locator("nav").getByRole("link", { name, exact: true }).click();
    await settled(watched.page);
  };

  test("why a device idles: on the first screen", async () => {
    const { page } = watched;
    await goTo(page, "overview");
    const rows = analyze("idle_causes", input).results.filter(({ idle_ns }) => Number(idle_ns) > 0);
    const first = rows.filter((row) => row.rank === rows[0]?.rank && row.device === rows[0]?.device);
    first.sort((one, other) => Number(other.idle_ns) - Number(one.idle_ns));
    const list = page.getByRole("list", { name: `Why GPU ${first[0]?.device} of rank ${first[0]?.rank} idles` });
    expect(await titles(page, ".causes:first-of-type > li:first-child > .number .value")).toContain(
      exactCell("ns", first[0]?.idle_ns ?? null),
    );
    const place = await list.boundingBox();
    expect((place?.y ?? Infinity) + (place?.height ?? 0)).toBeLessThanOrEqual(900);
    if (typeof first[0]?.host === "string") expect(await list.textContent()).toContain(first[0].host.slice(0, 20));
  });

  test("the longest gap, and what the host did meanwhile: one click, and one more to see it", async () => {
    const { page } = watched;
    await toPage("Why idle");
    const [gap] = analyze("idle_gaps", input).results;
    const row = page.getByRole("grid", { name: "Longest gaps" }).locator("tr[data-row='0']");
    expect(await row.textContent()).toContain(formatNs(gap?.idle_ns as number));
    await row.click();
    await page.getByRole("link", { name: "On the timeline", exact: true }).click();
    await page.waitForURL(/#timeline\?.*view=/);
    await settled(page);
    // The gap fills a good part of what is seen.
    const [, from, to] = /view=(\d+)-(\d+)/.exec(page.url()) ?? [];
    expect(Number(gap?.idle_ns) / (Number(to) - Number(from))).toBeGreaterThan(0.3);
    expect(await page.getByRole("tab", { name: "Range" }).getAttribute("aria-selected")).toBe("true");
    expect(await page.locator(".timeline-range .value").first().getAttribute("title")).toBe(`${gap?.idle_ns} ns`);
  });

  test("the queue of a device over time: from its row to the timeline", async () => {
    const { page } = watched;
    await toPage("Why idle");
    const row = page.getByRole("grid", { name: "Work in the queues" }).locator("tr[data-row='0']");
    if ((await row.count()) === 0) return;
    await row.click();
    await page.getByRole("link", { name: "Its length on the timeline" }).click();
    await page.waitForURL(/#timeline\?.*tracks=/);
    await settled(page);
    expect(await page.locator(".timeline-label .timeline-name").allTextContents()).toContain("Queue length");
  });

  test("the kernels of a module: two clicks", async () => {
    const { page } = watched;
    await toPage("Call tree");
    const calls = analyze("call_tree", input).results;
    const module = calls.find(({ kind, device_total_ns }) => kind === "module" && Number(device_total_ns) > 0);
    const whole = page.locator(".tree tbody tr").first();
    if (!module) {
      // Without modules there are operators.
      await whole.click();
      expect(await page.locator(".flame g[role=button]").count()).toBeGreaterThan(0);
      return;
    }
    const kind = String(module.name).replace(/_\d+$/, "");
    await page.locator(`.flame g[role=button][aria-label*="${kind}"]`).first().click();
    await page.waitForURL(/root=/);
    const words = await page
      .locator(".flame g[role=button]")
      .evaluateAll((all) => all.map((box) => box.textContent ?? ""));
    const kernels = new Set(calls.filter((row) => row.kind === "kernel").map(({ name }) => String(name).slice(0, 40)));
    expect(words.some((text) => [...kernels].some((name) => text.includes(name)))).toBe(true);
  });

  test("who launches the kernel with the most time: bottom-up, two clicks", async () => {
    const { page } = watched;
    await goTo(page, "calls?direction=callers&by=device_total_ns");
    const rows = analyze("call_tree", input, "--group-by", "callers").results;
    const roots = rows.filter(({ depth, kind }) => depth === 0 && kind === "kernel");
    roots.sort((one, other) => Number(other.device_total_ns) - Number(one.device_total_ns));
    const [first] = roots;
    const cells = page.locator(".tree tbody tr").first().locator("td");
    expect(await cells.first().textContent()).toContain(String(first?.name).slice(0, 60));
    const all = await cells.evaluateAll((cells) => cells.map((cell) => (cell as HTMLElement).title));
    expect(all).toContain(exactCell("ns", first?.device_total_ns ?? null));
  });

  test("how near operators come to the device's peak: one click, as a picture", async () => {
    const { page } = watched;
    await toPage("Efficiency");
    const known = analyze("roofline", input).results.filter(
      (row) => Number(row.flops_per_byte ?? 0) > 0 && Number(row.flops_per_s ?? 0) > 0,
    );
    const [device] = analyze("device_peaks", input).results;
    const points = page.locator(".roofline-point");
    expect(await points.count()).toBe(Math.min(200, known.length));
    if (known.length > 0 && device?.memory_bytes_per_s !== null)
      expect(await page.locator(".roof").count()).toBeGreaterThan(1);
  });

  test("who holds the peak of memory: one click from the first screen", async () => {
    const { page } = watched;
    await goTo(page, "overview");
    if (!(await pagesOf(page)).includes("memory")) {
      expect(await page.getByRole("region", { name: "Memory", exact: true }).count()).toBe(0);
      return;
    }
    await page.getByRole("region", { name: "Memory", exact: true }).locator("tbody a").first().click();
    await settled(page);
    expect(
      await page.getByRole("grid", { name: "Who holds the peak" }).locator("tr[data-row]").count(),
    ).toBeGreaterThan(0);
  });

  test("who launches a kernel: its row, and a link", async () => {
    const { page } = watched;
    await toPage("Kernels");
    const row = page.getByRole("grid", { name: "All kernels" }).locator("tr[data-row='0']");
    const name = (await row.locator("td").first().getAttribute("title")) ?? "";
    await row.click();
    await page.getByRole("link", { name: "Who launches it" }).click();
    await settled(page);
    const calls = page.locator(".tree tbody tr");
    expect((await calls.first().locator("td").first().getAttribute("title")) ?? "").toContain(name.slice(0, 100));
    expect(await calls.count()).toBeGreaterThan(1);
  });

  // WebDriver says nothing of files that a page makes.
  test.skipIf(IS_FIREFOX)("a picture of what the timeline shows: two clicks", async () => {
    const { page } = watched;
    await toPage("Timeline");
    await page.getByText("Export", { exact: true }).click();
    const picture = page.getByRole("button", { name: "Picture of what is shown" });
    const [file] = await Promise.all([page.waitForEvent("download"), picture.click()]);
    const bytes = readFileSync(await file.path());
    expect(bytes.subarray(1, 4).toString()).toBe("PNG");
    const stage = await page.locator(".timeline-stage").boundingBox();
    expect(Math.abs(bytes.readUInt32BE(16) - (stage?.width ?? 0))).toBeLessThanOrEqual(1);
    expect(Math.abs(bytes.readUInt32BE(20) - (stage?.height ?? 0))).toBeLessThanOrEqual(1);
    // Rows with their names are more than one colour.
    expect(bytes.length).toBeGreaterThan(5_000);
    await page.keyboard.press("Escape");
  });

  test.skipIf(IS_FIREFOX)("the same picture in shapes and texts: two clicks", async () => {
    const { page, context } = watched;
    await toPage("Timeline");
    const save = async (name: string) => {
      await page.getByText("Export", { exact: true }).click();
      const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
      await page.keyboard.press("Escape");
      return readFileSync(await file.path());
    };
    const pixels = await save("Picture of what is shown");
    const shapes = await save("The same in shapes and texts");
    const text = shapes.toString();
    const labels = await page.locator(".timeline-label .timeline-name").allTextContents();
    const { isWrong, texts } = await page.evaluate((text) => {
      const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
      const texts = [...parsed.querySelectorAll("text")].map((each) => each.textContent ?? "");
      return { isWrong: parsed.querySelector("parsererror") !== null, texts };
    }, text);
    expect(isWrong).toBe(false);
    expect(labels.length).toBeGreaterThan(2);
    expect(labels.filter((label) => !texts.includes(label))).toEqual([]);
    expect(texts.some((each) => / ms$| µs$/.test(each))).toBe(true);
    // Both look the same, but for the edges of letters: drawn at one size, few pixels differ much.
    const other = await context.newPage();
    const differing = await other.evaluate(
      async (sources) => {
        const images = await Promise.all(
          sources.map(async (source) => {
            const image = new Image();
            image.src = source;
            await image.decode();
            return image;
          }),
        );
        const [width, height] = [images[0]?.naturalWidth ?? 0, images[0]?.naturalHeight ?? 0];
        const [one, two] = images.map((image) => {
          const context = new OffscreenCanvas(width, height).getContext("2d");
          context?.drawImage(image, 0, 0, width, height);
          return context?.getImageData(0, 0, width, height).data ?? new Uint8ClampedArray();
        });
        let count = 0;
        for (let at = 0; at < width * height * 4; at++) {
          if (at % 4 < 3 && Math.abs((one?.[at] ?? 0) - (two?.[at] ?? 0)) > 60) count++;
        }
        return count / (width * height * 3);
      },
      [`data:image/png;base64,${pixels.toString("base64")}`, `data:image/svg+xml;base64,${shapes.toString("base64")}`],
    );
    await other.close();
    expect(differing).toBeLessThan(0.03);
  });

  test("the timeline fills the window, and its panel goes where a person wants it", async () => {
    const { page } = watched;
    await toPage("Timeline");
    const scroll = page.locator(".timeline-scroll");
    const height = async () => (await scroll.boundingBox())?.height ?? 0;
    const bottom = await page.locator(".timeline").evaluate((element) => element.getBoundingClientRect().bottom);
    expect(bottom).toBeLessThanOrEqual(900);
    expect(bottom).toBeGreaterThan(850);
    expect(await page.evaluate(() => document.documentElement.scrollHeight - innerHeight)).toBeLessThanOrEqual(0);
    const unasked = await height();
    await page.getByRole("button", { name: "Close", exact: true }).click();
    expect(await height()).toBeGreaterThan(unasked + 150);
    await page.getByRole("tab", { name: "Range" }).click();
    expect(await height()).toBe(unasked);
    const line = page.getByRole("separator", { name: "Size of the details" });
    const place = await line.boundingBox();
    if (!place) throw new Error("there is no line to drag");
    await page.mouse.move(place.x + place.width / 2, place.y + 4);
    await page.mouse.down();
    await page.mouse.move(place.x + place.width / 2, place.y - 96, { steps: 4 });
    await page.mouse.up();
    expect(Math.abs((await height()) - (unasked - 100))).toBeLessThanOrEqual(2);
    await line.focus();
    await page.keyboard.press("ArrowDown");
    expect(Math.abs((await height()) - (unasked - 76))).toBeLessThanOrEqual(2);
    await page.getByRole("button", { name: "On the right" }).click();
    expect(await height()).toBeGreaterThan(unasked + 150);
    // The browser remembers it.
    await page.reload();
    await settled(page);
    expect(await height()).toBeGreaterThan(unasked + 150);
    await page.getByRole("button", { name: "Below" }).click();
  });
});
