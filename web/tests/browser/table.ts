import type { Page } from "playwright-core";

/** A cell as it is shown, and what hovering over it says. */
export interface ShownCell {
  readonly text: string;
  readonly exact: string;
}

/** Every row of the table with this name, scrolled through from its top. */
export async function shownRows(page: Page, name: string): Promise<ShownCell[][]> {
  const table = page.getByRole("grid", { name, exact: true });
  await table.waitFor();
  const count = Number(await table.getAttribute("aria-rowcount")) - 1;
  const rows: ShownCell[][] = [];
  while (rows.length < count) {
    const next = table.locator(`tr[data-row="${rows.length}"]`);
    await table.evaluate((element, at) => element.parentElement?.scrollTo(0, at * 28), rows.length);
    await next.waitFor({ state: "attached" });
    const onScreen = await table.locator("tr[data-row]").evaluateAll((elements) =>
      elements.map((element) => ({
        index: Number((element as HTMLElement).dataset.row),
        cells: [...element.querySelectorAll("td")].map((cell) => ({ text: cell.textContent ?? "", exact: cell.title })),
      })),
    );
    const before = rows.length;
    for (const row of onScreen) {
      if (row.index === rows.length && row.cells.every((cell) => cell.text !== "…" || cell.exact !== ""))
        rows.push(row.cells);
    }
    if (rows.length === before) await page.waitForTimeout(50);
  }
  return rows;
}

/** The names of its columns, as they are in results. */
export async function shownColumns(page: Page, name: string): Promise<string[]> {
  const heads = page.getByRole("grid", { name, exact: true }).locator("thead th");
  return heads.evaluateAll((elements) => elements.map((element) => (element as HTMLElement).title.split(":")[0] ?? ""));
}
