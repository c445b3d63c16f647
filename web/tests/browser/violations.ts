import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe-core finds against WCAG 2.2 AA on the page as it is: `rule: where`. */
export async function violations(page: Page): Promise<string[]> {
  // Through the debugger, so that the page's own policy need not allow it.
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(AXE);
  // Everything that passes is megabytes on a page with large tables: it stays in the page.
  const found = await page.evaluate<{ checked: number; violations: string[] }>(
    `axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
      resultTypes: ["violations"],
    }).then(({ passes, violations }) => ({
      checked: passes.length,
      violations: violations.flatMap(({ id, nodes }) =>
        nodes.map((node) => id + ": " + node.target + " " + node.failureSummary),
      ),
    }))`,
  );
  // A page that was not looked at has no violations either.
  if (found.checked < 10) throw new Error(`axe-core checked only ${found.checked} rules`);
  return found.violations;
}
