// The tree of calls of one thread is that of the command, and the link keeps the thread.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { formatCell } from "../../src/format/cell";
import { at, launch, open, settled } from "./browser";
import { RANKS, RUN, STRANGE } from "./inputs";
import { served } from "./served";
import { analyze } from "./stepscope";
import { violations } from "./violations";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

for (const [direction, group] of [
  ["callees", "callees-by-thread"],
  ["callers", "callers-by-thread"],
] as const) {
  test(`the calls of one thread stand alone: ${direction}`, async () => {
    const server = await served([RUN]);
    const rows = analyze("call_tree", RUN, "--group-by", group).results;
    const roots = rows.filter(({ depth }) => depth === 0);
    const names = [...new Set(roots.map(({ thread }) => String(thread)))];
    const { page, close } = await open(browser, at(server.url, `calls?direction=${direction}&layers=no&recursion=no`));
    await settled(page);
    const choice = page.getByRole("combobox", { name: "Thread", exact: true });
    await choice.waitFor();
    const options = await choice
      .locator("option")
      .evaluateAll((all) => all.map((one) => (one as HTMLOptionElement).value));
    expect([...options].sort()).toEqual(["", ...names].sort());
    const last = names.at(-1) ?? "";
    await choice.selectOption(last);
    await page.waitForURL(/thread=/);
    await settled(page);
    // A link is all it takes.
    const other = await open(browser, at(server.url, new URL(page.url()).hash.slice(1)));
    await settled(other.page);
    const own = roots.filter(({ thread }) => thread === last);
    const first = own.reduce((most, row) =>
      Number(row.device_total_ns) > Number(most.device_total_ns) ||
      (row.device_total_ns === most.device_total_ns && Number(row.host_total_ns) > Number(most.host_total_ns))
        ? row
        : most,
    );
    const shown = other.page.locator(".tree tbody tr").first();
    await expect.poll(() => shown.textContent()).toContain(formatCell("ns", first.host_total_ns ?? null));
    expect(await other.page.getByRole("combobox", { name: "Thread", exact: true }).inputValue()).toBe(last);
    await other.close();
    await close();
  });
}

test.each(["calls", "modules"])("boxes of %s hang or stand, and the link keeps it", async (name) => {
  const server = await served([RANKS]);
  const { page, close } = await open(browser, at(server.url, name));
  await settled(page);
  /** Where the first box begins, and the chart ends. */
  const place = async (page: Page) => {
    const first = await page.locator(".flame g[role=button]").first().boundingBox();
    const chart = await page.locator(".flame").boundingBox();
    if (!first || !chart) throw new Error("there are no boxes");
    return { above: first.y - chart.y, below: chart.y + chart.height - first.y - first.height };
  };
  expect((await place(page)).above).toBeLessThan(2);
  await page.getByRole("combobox", { name: "Boxes begin" }).selectOption("flame");
  await page.waitForURL(/shape=flame/);
  const other = await open(browser, at(server.url, new URL(page.url()).hash.slice(1)));
  await settled(other.page);
  expect((await place(other.page)).below).toBeLessThan(3);
  // The arrows lead where the boxes are.
  await other.page.locator('.flame g[tabindex="0"]').focus();
  await other.page.keyboard.press("ArrowUp");
  const focused = () => other.page.evaluate(() => document.activeElement?.getBoundingClientRect().y ?? 0);
  expect(await focused()).toBeLessThan(
    (await other.page.locator(".flame g[role=button]").first().boundingBox())?.y ?? 0,
  );
  await other.close();
  await close();
  await server.stop();
});

const LAYERED = STRANGE.filter((input) => input.includes("qwen"));

describe.each(LAYERED)("%s", (input) => {
  test.each(["calls", "modules"])(
    "on %s alike layers are one row with their numbers, which shows each of them",
    async (name) => {
      const layers = analyze("modules", input).results.filter((row) => row.module_class === "Qwen2DecoderLayer");
      expect(layers.length).toBeGreaterThan(2);
      const server = await served([input]);
      const { page, close } = await open(browser, at(server.url, `${name}?without=python&find=Qwen2DecoderLayer`));
      await settled(page);
      const one = `Qwen2DecoderLayer_0–${layers.length - 1} ×${layers.length}`;
      const rows = page.locator(".tree tbody tr", { hasText: /Qwen2DecoderLayer_\d/ });
      await rows.filter({ hasText: one }).first().waitFor();
      await page
        .getByRole("button", { name: `Show each of ${one}` })
        .first()
        .click();
      await page.waitForURL(/apart=/);
      await settled(page);
      for (const layer of layers) {
        const own = page.locator(".tree .tree-name", { hasText: new RegExp(`${layer.name}(?![\\d–])`) });
        await own.first().waitFor();
      }
      expect(await violations(page)).toEqual([]);
      await page.getByRole("link", { name: "Alike ones as one again" }).click();
      await rows.filter({ hasText: one }).first().waitFor();
      await close();
      await server.stop();
    },
  );
});
