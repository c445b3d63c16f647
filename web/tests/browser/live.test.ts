// A run that grows while it is looked at: nothing is reloaded, and the page says for how long the run is recorded.

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { goTo, launch, open, settled } from "./browser";
import { analyze, report, type View, view, WRITER } from "./stepscope";

/** A program that records itself, and makes a step of each line that it is given. */
class Writer {
  private readonly child: ChildProcess;
  private readonly said: AsyncIterator<string>;
  private readonly ended: Promise<number | null>;

  constructor(run: string) {
    if (!existsSync(WRITER))
      throw new Error(`there is no ${WRITER}: cargo build --release -p stepscope --example lines`);
    this.child = spawn(WRITER, [run], { stdio: ["pipe", "pipe", "inherit"] });
    if (!this.child.stdout) throw new Error("it has no output");
    this.said = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
    this.ended = new Promise((resolve) => this.child.on("close", resolve));
  }

  /** Has it make `count` steps, and waits until they are done. */
  async steps(count: number): Promise<void> {
    for (let step = 0; step < count; step++) {
      this.child.stdin?.write("some words\n");
      expect((await this.said.next()).value).toMatch(/^step \d+: 2 words$/);
    }
  }

  /** Has it end by itself. */
  async end(): Promise<void> {
    this.child.stdin?.end();
    expect(await this.ended).toBe(0);
  }

  /** Ends it as running out of memory does. */
  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.ended;
  }
}

let browser: Browser;
let folder: string;
let server: View | undefined;
const writers: Writer[] = [];
const begin = (name: string): Writer => {
  const writer = new Writer(join(folder, name));
  writers.push(writer);
  return writer;
};
beforeAll(async () => {
  browser = await launch();
  folder = mkdtempSync(join(tmpdir(), "stepscope-live-"));
});
afterAll(async () => {
  await browser.close();
  await server?.stop();
  await Promise.all(writers.map((writer) => writer.kill()));
  rmSync(folder, { recursive: true });
});

const live = (page: Page) => page.locator("header .live");
/** Waits until the overview is of `count` steps. */
const stepsShown = (page: Page, count: number) =>
  page
    .getByText(new RegExp(`^${count} steps?\\b`))
    .first()
    .waitFor();

/** Waits until the table has as many rows as the command says, and gives how many. */
async function tableFull(page: Page, run: string): Promise<number> {
  const count = analyze("step_breakdown", run).results.length;
  await page.locator(`[role=grid][aria-rowcount="${count + 1}"]`).waitFor();
  return count;
}

test("what is recorded shows as it comes, and what ends is no longer live", async () => {
  const first = begin("first");
  await first.steps(5);
  server = await view([folder]);
  const { page, close } = await open(browser, server.url);
  await settled(page);
  // Reloading would lose it.
  await page.evaluate(() => Object.assign(globalThis, { isSame: true }));
  const isSame = () => page.evaluate(() => "isSame" in globalThis);

  await live(page).waitFor();
  await stepsShown(page, 5);
  await first.steps(7);
  await stepsShown(page, 12);
  expect(await page.locator("svg [role=button]").count()).toBe(12);
  expect(await live(page).count()).toBe(1);

  // A page of tables and the timeline follow, too.
  await goTo(page, "tables?analysis=step_breakdown");
  const before = await tableFull(page, join(folder, "first"));
  await first.steps(3);
  expect(await tableFull(page, join(folder, "first"))).toBe(before + 3);
  await goTo(page, "timeline");
  const shown = page.locator("output").first();
  const length = await shown.textContent();
  await first.steps(10);
  await expect.poll(() => shown.textContent(), { timeout: 20_000 }).not.toBe(length);

  // One more run in the folder.
  const others = page.locator("header .run option", { hasText: "second" });
  expect(await others.count()).toBe(0);
  const second = begin("second");
  await second.steps(2);
  await others.waitFor({ state: "attached" });

  await goTo(page, "overview");
  await first.end();
  await live(page).waitFor({ state: "detached" });
  await stepsShown(page, 25);
  expect(report(join(folder, "first")).steps?.count).toBe(25);

  await page.locator("header .run select").selectOption({ label: "second" });
  await live(page).waitFor();
  await stepsShown(page, 2);
  await second.kill();
  await live(page).waitFor({ state: "detached" });
  await page.locator("main code", { hasText: "capture.process_killed" }).filter({ visible: true }).first().waitFor();
  expect(await isSame()).toBe(true);
  await close();
});
