// The tree of calls of one thread is that of the command, and the link keeps the thread.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatCell } from "../../src/format/cell";
import { at, launch, open, settled } from "./browser";
import { RUN } from "./inputs";
import { served } from "./served";
import { analyze } from "./stepscope";

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
