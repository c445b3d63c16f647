// The page of queries with the program that runs SQL: its rows are those of the command, an error has its place.

import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { at, launch, open, settled } from "./browser";
import { analyze, CHECKOUT, type View, view } from "./stepscope";
import { shownRows } from "./table";
import { violations } from "./violations";

/** What `cargo xtask test` has built. */
const PROGRAM = process.env.STEPSCOPE_SQL_PROGRAM;

const link = (sql: string) => `query?${new URLSearchParams({ sql })}`;

describe.skipIf(!PROGRAM)("with the program", () => {
  let browser: Browser;
  let server: View;
  let [folder, trace] = ["", ""];
  beforeAll(async () => {
    browser = await launch();
    folder = mkdtempSync(join(tmpdir(), "stepscope-query-"));
    trace = join(folder, "trace.json.gz");
    copyFileSync(`${CHECKOUT}tests/fixtures/kineto/a100_alexnet_sync.json.gz`, trace);
    server = await view([trace], [], "", { STEPSCOPE_SQL: PROGRAM ?? "" });
  });
  afterAll(async () => {
    await browser.close();
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  /** The page of a query, with the texts of its rows. */
  async function asked(sql: string) {
    const { page, close } = await open(browser, at(server.url, link(sql)));
    await settled(page);
    await page.getByRole("region", { name: "Result", exact: true }).locator("tbody tr").first().waitFor();
    const rows = (await shownRows(page, "Result")).map((row) => row.map((cell) => cell.text));
    return { page, close, rows };
  }

  test("rows of a query and of an analysis are those of the command", async () => {
    const kernels = analyze("kernels", trace).results;
    const { page, close, rows } = await asked(
      "select name, count(*) as calls from kernel group by name order by calls desc, name limit 5",
    );
    const counts = kernels.map((row) => [String(row.name), Number(row.count)] as const);
    counts.sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
    expect(rows.map(([, calls]) => calls)).toEqual(counts.slice(0, 5).map(([, count]) => String(count)));
    expect(await violations(page)).toEqual([]);
    await close();
    const all = await asked("select count(*) as n from kernels(group_by => 'name')");
    expect(all.rows[0]).toContain(String(kernels.length));
    await all.close();
  });

  test("an error has its place, and the name that may be meant", async () => {
    const { page, close } = await open(browser, at(server.url, link("select nam from op")));
    await settled(page);
    await page.getByText("there is no column nam").first().waitFor();
    await page.getByText("did you mean name?").first().waitFor();
    await page.getByText("line 1, column 8").first().waitFor();
    await close((trouble) => trouble.includes("400"));
  });
});
