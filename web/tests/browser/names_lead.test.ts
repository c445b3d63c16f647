// Names lead to each other: from whatever page shows one to the pages that have more of it.

import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { goTo, settled } from "./browser";
import { TRACE } from "./inputs";
import { analyze, CHECKOUT } from "./stepscope";
import { viewerOf } from "./viewer";

/** A run with modules, and operators that they call. */
const RUN = `${CHECKOUT}tests/fixtures/gpu/convnet/run`;

/** Where the first row of a table leads. */
async function ofFirstRow(page: Page, table: string): Promise<(string | null)[]> {
  const section = page.getByRole("region", { name: table, exact: true });
  await section.locator("tr[data-row='0']").click();
  const links = section.locator(".row-detail-head a");
  return links.evaluateAll((all) => all.map((link) => link.getAttribute("href")));
}

describe("modules", () => {
  const viewer = viewerOf([RUN]);

  test("a module's row leads to the operators that it calls, and those lead back", async () => {
    const row = analyze("modules", RUN).results.find(({ parent }) => parent !== null);
    const path = String(row?.path);
    const { page, close } = await viewer.show(`modules?where=${encodeURIComponent(`path:eq:${path}`)}`);
    await page.getByRole("region", { name: "All modules" }).locator("tr[data-row='0']").click();
    await page.getByRole("link", { name: "Its operators" }).click();
    await settled(page);
    const operators = analyze("operators", RUN, "--group-by", "module").results.filter(({ module }) => module === path);
    expect(operators.length).toBeGreaterThan(0);
    const rows = page.getByRole("grid", { name: "All operators" }).locator("tr[data-row]");
    await expect.poll(() => rows.count()).toBe(operators.length);
    await rows.first().click();
    await page.getByRole("link", { name: "Its module" }).click();
    await settled(page);
    expect(await page.getByText(`Show all modules, not only ${path}`).count()).toBe(1);
    await close();
  });

  test("the panel of a slice leads to its module", async () => {
    const { page, close } = await viewer.show("timeline?q=aten::conv2d");
    await page.getByRole("button", { name: "Next hit" }).click();
    const link = page.locator("h3:has-text('Module') + ol a").first();
    await link.waitFor();
    const names = await page.locator("h3:has-text('Module') + ol a").allTextContents();
    await link.click();
    await settled(page);
    const path = names.toReversed().join(".");
    expect(analyze("modules", RUN).results.map((row) => row.path)).toContain(path);
    expect(await page.getByText(`Show all modules, not only ${path}`).count()).toBe(1);
    await close();
  });

  test("the call that is chosen leads to its operator, or its module", async () => {
    const { page, close } = await viewer.show("calls?find=aten::conv2d&layers=no");
    const choose = async (kind: string, link: string) => {
      await page
        .locator(".tree tbody tr", { has: page.locator(".module-class", { hasText: kind }) })
        .first()
        .click();
      await settled(page);
      await page.locator(".choices").getByRole("link", { name: link }).click();
      await settled(page);
    };
    await choose("module", "In Modules");
    expect(await page.getByRole("grid", { name: "All modules" }).locator("tr[data-row]").count()).toBeGreaterThan(0);
    await goTo(page, "calls?direction=callers&find=aten::conv2d&layers=no");
    await choose("op", "In Operators");
    expect(await page.getByRole("grid", { name: "All operators" }).locator("tr[data-row]").count()).toBe(1);
    await close();
  });
});

describe("kernels", () => {
  const viewer = viewerOf([TRACE]);

  test.each([
    ["kernels", "All kernels"],
    ["operators", "All operators"],
  ])("bars of %s lead where rows of the table do", async (place, table) => {
    const { page, close } = await viewer.show(place);
    const bar = await page.locator(".bars a").first().getAttribute("href");
    expect(bar).toBe((await ofFirstRow(page, table))[0]);
    await close();
  });

  test("a kernel's row leads to its operator, where it says which", async () => {
    const { page, close } = await viewer.show("kernels?group=properties&where=op:ne:");
    await ofFirstRow(page, "All kernels");
    await page.getByRole("link", { name: "Its operator" }).click();
    await settled(page);
    expect(await page.getByRole("grid", { name: "All operators" }).locator("tr[data-row]").count()).toBe(1);
    await close();
  });
});
