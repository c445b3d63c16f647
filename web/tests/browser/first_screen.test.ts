// What the overview promises is on its first screen: a person who only looks has the answer.

import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { TRACE } from "./inputs";
import { CHECKOUT } from "./stepscope";
import { viewerOf } from "./viewer";

const SCREEN = { width: 1440, height: 900 };

/** A trace of an A100 of the repository, and real ones of the two devices where this machine has them. */
const TRACES = [
  `${CHECKOUT}tests/fixtures/kineto/a100_alexnet_sync.json.gz`,
  TRACE,
  `${dirname(TRACE)}/a100_ddp_nccl_rank.json.gz`,
].filter((path, at, all) => existsSync(path) && all.indexOf(path) === at);

/** How many pieces of advice are on it, where there are as many. */
const FIRST = 2;

const inMain = (page: Page) => page.getByRole("main");
const advice = (page: Page) => inMain(page).getByRole("region", { name: "Most to gain" }).locator("li");

/** What is promised, and whether this run has it. */
const PROMISED: readonly (readonly [string, (page: Page) => Locator, (page: Page) => Locator | null])[] = [
  ["verdict", (page) => inMain(page).getByRole("region", { name: "Verdict" }), () => null],
  ["the step as one account", (page) => inMain(page).getByRole("list", { name: "Where the time goes" }), () => null],
  [
    "the chart of steps",
    (page) => inMain(page).getByRole("region", { name: "Steps", exact: true }).locator("svg.chart:not(.breakdown-bar)"),
    (page) => page.locator("header").getByRole("combobox", { name: "Step", exact: true }),
  ],
  [
    "why devices idle",
    (page) =>
      inMain(page)
        .getByRole("list", { name: /^Why GPU .* idles$/ })
        .first(),
    () => null,
  ],
  [
    "memory",
    (page) => inMain(page).getByRole("table", { name: "Peaks of memory" }),
    (page) => page.locator("nav a:not(.missing)").getByText("Memory", { exact: true }),
  ],
  ["advice", (page) => advice(page).first(), () => null],
  [`advice ${FIRST}`, (page) => advice(page).nth(FIRST - 1), (page) => advice(page).nth(FIRST - 1)],
];

describe.each(TRACES)("%s", (input) => {
  const viewer = viewerOf([input]);

  test.each(["light", "dark"] as const)("what the overview promises is seen without scrolling, %s", async (scheme) => {
    const { page, close } = await viewer.show("", { viewport: SCREEN, colorScheme: scheme });
    for (const [name, find, needs] of PROMISED) {
      const condition = needs(page);
      if (condition && (await condition.count()) === 0) continue;
      const box = await find(page).boundingBox();
      expect([name, box !== null]).toEqual([name, true]);
      const { x, y, width, height } = box ?? { x: 0, y: 0, width: 0, height: 0 };
      expect([name, width > 0 && height > 0]).toEqual([name, true]);
      expect([x, y].map(Math.sign), name).not.toContain(-1);
      expect(x + width, name).toBeLessThanOrEqual(SCREEN.width);
      expect(y + height, name).toBeLessThanOrEqual(SCREEN.height);
    }
    await close();
  });
});
