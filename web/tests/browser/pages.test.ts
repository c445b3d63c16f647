// Every page, on every input: it shows something, and nothing is lost where there is little room.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { at, goTo, launch, open, pagesOf, settled } from "./browser";
import { INPUTS } from "./inputs";
import { served } from "./served";
import type { View } from "./stepscope";

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

  test("pages with nothing to show say what would record it", async () => {
    const { page, close } = await open(browser, server.url);
    await settled(page);
    for (const link of await page.locator("nav a.missing").all()) {
      await link.click();
      expect((await page.locator(".notice.empty").textContent())?.length).toBeGreaterThan(20);
    }
    await close();
  });

  test("code in sentences is set as code, without its backquotes", async () => {
    const { page, close } = await open(browser, server.url);
    await settled(page);
    const names = await page.locator("nav a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
    for (const name of [...names, "#operators?group=shapes", "#operators?group=stack", "#operators?group=module"]) {
      await goTo(page, (name ?? "").slice(1));
      const lines = (await page.locator("main").allInnerTexts()).flatMap((text) => text.split("\n"));
      expect([name, lines.filter((line) => line.includes("`"))]).toEqual([name, []]);
    }
    await close();
  });

  test.each([
    ["400 pixels wide", { viewport: { width: 400, height: 800 } }],
    ["at 200 % zoom", { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 }],
  ])("nothing sticks out, %s", async (_, options) => {
    const { page, close } = await open(browser, server.url, options);
    await settled(page);
    for (const name of await pagesOf(page)) {
      await goTo(page, name);
      const [content, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      expect(content, name).toBeLessThanOrEqual(room ?? 0);
    }
    await close();
  });

  test("a link leads to the same page in another window", async () => {
    const { page, close } = await open(browser, server.url);
    await settled(page);
    for (const name of await pagesOf(page)) {
      await goTo(page, name);
      const other = await open(browser, at(server.url, name));
      await settled(other.page);
      expect(await other.page.locator("h1").first().textContent()).toBe(await page.locator("h1").first().textContent());
      expect(other.page.url()).not.toContain("token");
      await other.close();
    }
    await close();
  });
});
