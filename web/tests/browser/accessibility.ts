import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe-core finds against WCAG 2.2 AA on the page as it is: `rule: where`. */
export async function violations(page: Page): Promise<string[]> {
  // Through the debugger, so that the page's own policy need not allow it.
  await page.evaluate(AXE);
  const found = await page.evaluate<AxeResults>(
    `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })`,
  );
  // A page that was not looked at has no violations either.
  if (found.passes.length < 10) throw new Error(`axe-core checked only ${found.passes.length} rules`);
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.target} ${node.failureSummary}`),
  );
}
