// Every page, on every input, in both themes: no user is kept out.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { goTo, launch, open, pagesOf, settled } from "./browser";
import { INPUTS } from "./inputs";
import { served } from "./served";
import type { View } from "./stepscope";
import { violations } from "./violations";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

describe.each(INPUTS)("%s", (input) => {
  let server: View;
  beforeAll(async () => {
    server = await served([input]);
  });
  afterAll(() => server.stop());

  test.each(["light", "dark"] as const)("axe-core finds nothing on any page, %s", async (colorScheme) => {
    const { page, close } = await open(browser, server.url, { colorScheme });
    await settled(page);
    const pages = await pagesOf(page);
    expect(pages).toContain("overview");
    for (const name of pages) {
      await goTo(page, name);
      expect(await violations(page), name).toEqual([]);
    }
    await close();
  });
});
