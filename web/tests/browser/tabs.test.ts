// Other tabs of the browser, and servers that are started again, are let in as the first tab is.

import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, open, settled } from "./browser";
import { RANKS, RUN } from "./inputs";
import { convert, type View, view } from "./stepscope";

let browser: Browser;
let folder: string;
beforeAll(async () => {
  browser = await launch();
  folder = mkdtempSync(join(tmpdir(), "stepscope-tabs-"));
});
afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

const heading = async (page: Page) => {
  await settled(page);
  return page.locator("main h1").first().textContent();
};
const originOf = (server: View) => new URL(server.url).origin;
/** A server on the port that another one had. */
const again = (server: View, inputs: string[], state: string) =>
  view(inputs, ["--port", new URL(server.url).port], state);

test("a link opened in another tab works, and so does the address typed there; another browser is asked", async () => {
  const server = await view([RUN]);
  const { page, context, close } = await open(browser, server.url);
  await settled(page);
  for (const how of [{ modifiers: ["Control"] as const }, { button: "middle" as const }]) {
    const [tab] = await Promise.all([
      context.waitForEvent("page"),
      page
        .getByRole("link", { name: "Operators", exact: true })
        .click({ ...how, modifiers: [...(how.modifiers ?? [])] }),
    ]);
    expect(await heading(tab)).toBe("Operators");
  }
  const typed = await context.newPage();
  await typed.goto(`${originOf(server)}/#source`);
  expect(await heading(typed)).toBe("Source");
  await close();

  const other = await open(browser, `${originOf(server)}/#operators`);
  const said = await other.page.getByRole("alert").textContent();
  expect(said).toContain("This tab has no access key.");
  await other.page.getByRole("textbox").fill(server.url);
  await other.page.getByRole("button", { name: "Open" }).click();
  expect(await heading(other.page)).toBe("Operators");
  await other.context.close();
  await server.stop();
});

test("after a restart on the same port open pages and links work", async () => {
  const first = await view([RUN]);
  await first.stop();
  const state = join(folder, "state");
  const server = await again(first, [RUN], state);
  const { page, context } = await open(browser, server.url);
  await settled(page);
  await server.stop();
  await page.getByText("The server does not answer").waitFor();
  const restarted = await again(first, [RUN], state);
  expect(restarted.url).toBe(server.url);
  await page.getByText("The server does not answer").waitFor({ state: "hidden" });
  await page.reload();
  await page.getByRole("link", { name: "Operators", exact: true }).click();
  expect(await heading(page)).toBe("Operators");
  await restarted.stop();

  // Where the token is another, the address opened once lets every tab in, also one with a link that has an old token.
  rmSync(state, { recursive: true });
  const renewed = await again(first, [RUN], state);
  expect(renewed.url).not.toBe(server.url);
  await page.getByText("This tab has no access key.").waitFor();
  const tab = await context.newPage();
  await tab.goto(renewed.url);
  await settled(tab);
  expect(await heading(page)).toBe("Operators");
  const old = await context.newPage();
  await old.goto(`${server.url}#operators`);
  expect(await heading(old)).toBe("Operators");
  await context.close();
  await renewed.stop();
});

test("a link leads to its run, also when another was added before it and the server was started again", async () => {
  const runs = join(folder, "runs");
  mkdirSync(runs);
  convert(RUN, join(runs, "b.json"));
  convert(RANKS, join(runs, "c.json"));
  const server = await view([runs]);
  const { page, close } = await open(browser, server.url);
  await settled(page);
  await page.waitForURL(/run=b\.json-[0-9a-f]{8}/);
  const link = new URL(page.url()).hash;
  await close();
  await server.stop();
  copyFileSync(join(runs, "c.json"), join(runs, "a.json"));
  const next = await view([runs]);
  const { page: later, close: closeLater } = await open(browser, `${next.url}${link}`);
  await later.getByRole("heading", { level: 1, name: "b", exact: true }).waitFor();
  // A number of old is the run in that place.
  await later.goto(`${next.url}#overview?run=0`);
  await later.getByRole("heading", { level: 1, name: "a", exact: true }).waitFor();
  await later.goto(`${next.url}#overview?run=999`);
  await later.getByText("There is no run 999. Open a.json.").waitFor();
  await closeLater();
  await next.stop();
});
