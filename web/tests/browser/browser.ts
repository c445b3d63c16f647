// A real browser that is watched: whatever a page asks of another machine, logs as an error or throws is a failure.

import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import { launchFirefox } from "./firefox";

/** A page that is watched. */
export interface Watched {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What went wrong so far. */
  readonly troubles: string[];
  /** Fails when anything went wrong, and closes the page. */
  readonly close: (isExpected?: (trouble: string) => boolean) => Promise<void>;
}

/** Where Chromium or Chrome is as a rule. */
const USUAL = ["chromium", "chromium-browser", "google-chrome"].map((name) => `/usr/bin/${name}`);

/** Whether pages are looked at in Firefox. */
export const IS_FIREFOX = process.env.STEPSCOPE_TEST_BROWSER === "firefox";

/** Starts Chromium: `CHROMIUM`, or the one of the system; or Firefox. */
export function launch(): Promise<Browser> {
  if (IS_FIREFOX) return launchFirefox();
  const executablePath = process.env.CHROMIUM ?? USUAL.find((path) => existsSync(path));
  if (!executablePath) throw new Error("no Chromium and no Chrome: install one, or name it with CHROMIUM");
  // Each window has an address bar that nobody sees, and these pages of it take more time than most of ours.
  const unseen = "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup";
  return chromium.launch({ executablePath, args: ["--no-sandbox", unseen] });
}

/** Opens an address. */
export async function open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Watched> {
  const viewport = { width: 1280, height: 800 };
  const context = await browser.newContext({
    viewport,
    // Firefox asks nobody for these.
    ...(IS_FIREFOX ? {} : { permissions: ["clipboard-read", "clipboard-write"] }),
    ...options,
  });
  const page = await context.newPage();
  const troubles: string[] = [];
  const origin = new URL(url).origin;
  page.on("request", (request) => {
    const asked = request.url();
    if (!asked.startsWith(origin) && !/^(blob|data):/.test(asked)) troubles.push(`asks ${asked}`);
  });
  page.on("pageerror", (error) => troubles.push(`throws ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") troubles.push(`logs ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    troubles.push(`opens a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(url);
  const close = async (isExpected = (_trouble: string) => false) => {
    await context.close();
    expect(troubles.filter((trouble) => !isExpected(trouble))).toEqual([]);
  };
  return { page, context, troubles, close };
}

/** The address with this place behind `#`. */
export const at = (url: string, place: string): string => `${url}#${place}`;

/** Waits until everything that the page asked for is shown. */
export async function settled(page: Page): Promise<void> {
  await page.locator("main h1").first().waitFor();
  await page.waitForFunction(() => !document.querySelector(".notice.loading, [aria-busy=true]"));
}

/** Goes to a place of the same page, as a link does. */
export async function goTo(page: Page, place: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash;
    // What it shows then is drawn in the next frame, and what it asks for is asked for after that.
    return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve))));
  }, place);
  await settled(page);
}

/** The pages that have something to show, by the part of the address that names them. */
export function pagesOf(page: Page): Promise<string[]> {
  return page
    .locator("nav a:not(.missing)")
    .evaluateAll((links) => links.map((link) => (link.getAttribute("href") ?? "").replace(/^#|\?.*$/g, "")));
}
