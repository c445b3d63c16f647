import type { Page } from "playwright-core";
import type { Cell, Row, Unit } from "../../src/api/types";
import { PARTS } from "../../src/classes";
import { exactCell, MISSING, shortCell } from "../../src/format/cell";
import { shortName } from "../../src/format/names";

/** A cell as it is shown, and what hovering over it says. */
export interface ShownCell {
  readonly text: string;
  readonly exact: string;
}

/** What a row is called that sums up the others, and what has no name: its value is none. */
const NAMELESS = ["mean", "all", "without a call stack", "host"];
const isNameless = (cell: ShownCell) => NAMELESS.includes(cell.text) && cell.exact === exactCell("text", null);

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
        rows.push(row.cells.map((cell) => (isNameless(cell) ? { ...cell, text: MISSING } : cell)));
    }
    if (rows.length === before) await page.waitForTimeout(50);
  }
  return rows;
}

/** The names of its columns, as they are in results. */
export async function shownColumns(page: Page, name: string): Promise<string[]> {
  const heads = page.getByRole("grid", { name, exact: true }).locator("thead th");
  return heads.evaluateAll((elements) => elements.map((element) => (element as HTMLElement).dataset.column ?? ""));
}

/** A column's unit, told by its name: it has the unit in it. */
export function unitOf(name: string, cell: Cell): Unit {
  if (typeof cell === "string") return "text";
  if (name === "pid" || name === "line" || name === "step") return "id";
  if (name.endsWith("_ns")) return "ns";
  if (name.endsWith("_bytes_per_s")) return "bytes_per_s";
  if (/bytes(_per_step|_min|_mean|_median|_max)?$/.test(name)) return "bytes";
  if (name.endsWith("_ratio")) return "ratio";
  // Calls of a step, in a comparison.
  if (name === "a_count" || name === "b_count") return "plain";
  if (name === "calls_per_s" || name.endsWith("flops_per_s")) return "count";
  if (name === "bytes_per_s") return "bytes";
  return name.includes("_per_") || name === "length_mean" || name === "running_mean" ? "plain" : "count";
}

/** Columns whose values are names for programs, which pages show as words. */
const KINDS = [
  "cause",
  "class",
  "kind",
  "layer",
  "source",
  "category",
  "bound",
  "direction",
  "waits_for",
  "state",
  "action",
  "scenario",
  "work",
];

/** What tables call a value that is one of a few. */
function called(name: string, cell: Cell, text: string): string {
  if (name === "runs" && (cell === "a" || cell === "b")) return cell === "a" ? "only before" : "only now";
  if (name === "state" && cell === "unpaired") return "free not seen";
  if (name === "cause" || name === "class") return PARTS[String(cell)]?.words ?? text;
  return KINDS.includes(name) ? text.replaceAll("_", " ") : text;
}

/** Rows of a result as a table shows them. */
export const shownOf = (rows: readonly Row[], columns: readonly string[]): ShownCell[][] =>
  rows.map((row) =>
    columns.map((name) => {
      const cell = row[name] ?? null;
      const unit = unitOf(name, cell);
      const text = shortCell(unit, typeof cell === "string" ? shortName(cell) : cell);
      return { text: called(name, cell, text), exact: exactCell(unit, cell) };
    }),
  );

/** The order of rows is tested by itself; here they are the same ones. */
export const inOrder = (rows: readonly ShownCell[][]): string[] => rows.map((row) => JSON.stringify(row)).sort();
