// The pages in the frame of an editor: a click on a line of source is told to the editor that the address names, and to
// nobody else.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, FrameLocator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { placesOf } from "../../src/pages/operators/stack";
import { launch } from "./browser";
import { RANKS } from "./inputs";
import { analyze, CHECKOUT, type View, view } from "./stepscope";

const FOLDER = `${CHECKOUT}tests/python/programs`;
const NONCE = "0123456789abcdef0123";
const SOURCE = "source?file=ddp.py&line=36";
const STACKS = "operators?group=stack&sort=host_total_ns";

/** What arrived at the page around the frame. */
interface Heard {
  readonly data: unknown;
  readonly origin: string;
}

let browser: Browser;
let server: View;
/** Plays the editor, and another site. */
let outside: Server;
let editor: string;
beforeAll(async () => {
  browser = await launch();
  server = await view([RANKS], ["--source", FOLDER, "--allow-frame"]);
  outside = createServer((_request, response) => response.end("<!doctype html><title>editor</title>"));
  await new Promise<void>((resolve) => outside.listen(0, "127.0.0.1", resolve));
  // Another site than the viewer's, as an editor is.
  editor = `http://localhost:${(outside.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await browser.close();
  outside.close();
  await server.stop();
});

/** The address of a place of the viewer, which names this editor. */
function addressAt(place: string, told: string | null): string {
  const url = new URL(server.url);
  if (told !== null) {
    url.searchParams.set("editor", told);
    url.searchParams.set("nonce", NONCE);
  }
  url.hash = place;
  return url.href;
}

/** Opens the viewer in a frame of the editor's page. */
async function framed(place: string, told: string | null): Promise<{ page: Page; frame: FrameLocator }> {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  await page.goto(editor);
  await page.evaluate(
    (address) => {
      const heard: unknown[] = [];
      Object.assign(globalThis, { heard });
      addEventListener("message", ({ data, origin }) => heard.push({ data, origin }));
      const frame = Object.assign(document.createElement("iframe"), { src: address, width: "1200", height: "700" });
      document.body.append(frame);
    },
    addressAt(place, told),
  );
  const frame = page.frameLocator("iframe");
  await frame.locator("main h1").first().waitFor();
  return { page, frame };
}

/** Everything that the frame has said until now: messages arrive in the order in which they were sent. */
async function heard(page: Page): Promise<readonly Heard[]> {
  await page.frames()[1]?.evaluate(() => parent.postMessage("all said", "*"));
  await page.waitForFunction(() => Reflect.get(globalThis, "heard").some((one: Heard) => one.data === "all said"));
  const all: readonly Heard[] = await page.evaluate(() => Reflect.get(globalThis, "heard"));
  return all.filter(({ data }) => data !== "all said");
}

/** The places of the stack that takes the most time. */
function firstStack() {
  const stack = analyze("operators", RANKS, "--group-by", "stack", "--sort", "host_total_ns").results[0]?.stack;
  return placesOf(String(stack));
}

test("the button for a line tells the editor file and line, and nothing else", async () => {
  const { page, frame } = await framed(SOURCE, editor);
  await frame.getByRole("button", { name: "Open line 36 in the editor" }).click();
  const data = { stepscope: 1, kind: "open", file: `${FOLDER}/ddp.py`, line: 36, nonce: NONCE };
  expect(await heard(page)).toEqual([{ data, origin: new URL(server.url).origin }]);
  // The editor is the one around: no other is offered.
  expect(await frame.getByRole("combobox", { name: "Editor", exact: true }).count()).toBe(0);
  // What a copied link would have.
  expect(await page.frames()[1]?.evaluate(() => location.search)).toBe("");
  await page.context().close();
});

test("a file has one name for the editor, also while its other lines are being read", async () => {
  const { page, frame } = await framed(SOURCE, editor);
  await frame.getByRole("button", { name: "Open line 36 in the editor" }).click();
  let readOn = () => {};
  const held = new Promise<void>((resolve) => {
    readOn = resolve;
  });
  await page.route(/\/source\?.*line=41/, async (route) => {
    await held;
    await route.continue();
  });
  await page.frames()[1]?.evaluate(() => {
    location.hash = location.hash.replace("line=36", "line=41");
  });
  await frame.getByRole("button", { name: "Open line 41 in the editor" }).click();
  const places = (await heard(page)).map(({ data }) => data);
  expect(places).toMatchObject([36, 41].map((line) => ({ file: `${FOLDER}/ddp.py`, line })));
  readOn();
  await page.context().close();
});

test("a frame of a stack leads to the editor, and the page stays; with a key held it leads to the page", async () => {
  const [place] = firstStack();
  const { page, frame } = await framed(STACKS, editor);
  await frame.locator('tr[data-row="0"]').first().click();
  const link = frame.locator(".row-detail a[href^='#source']").first();
  await link.click();
  const data = { stepscope: 1, kind: "open", ...place, nonce: NONCE };
  expect((await heard(page)).map((one) => one.data)).toEqual([data]);
  expect(await frame.locator("main h1").first().textContent()).toBe("Operators");
  await link.focus();
  await page.keyboard.press("Enter");
  expect((await heard(page)).map((one) => one.data)).toEqual([data, data]);
  const opened = page.context().waitForEvent("page");
  await link.click({ modifiers: ["ControlOrMeta"] });
  await opened;
  expect((await heard(page)).length).toBe(2);
  await page.context().close();
});

test("another page that frames the viewer hears nothing of what is meant for the editor", async () => {
  for (const told of ["http://localhost:9", "vscode-webview://1a2b", "*", "null"]) {
    const { page, frame } = await framed(SOURCE, told);
    const button = frame.getByRole("button", { name: "Open line 36 in the editor" });
    // What is no origin is no editor.
    const isEditor = told.includes("://");
    if (isEditor) await button.click();
    else await frame.getByRole("link", { name: "Open line 36 in the editor" }).waitFor();
    expect(await heard(page)).toEqual([]);
    await page.context().close();
  }
});

test("a frame that no editor is named to tells nothing, and its links lead to its own pages", async () => {
  const { page, frame } = await framed(STACKS, null);
  await frame.locator('tr[data-row="0"]').first().click();
  await frame.locator(".row-detail a[href^='#source']").first().click();
  await frame.locator("main h1", { hasText: "Source" }).waitFor();
  await frame.locator(".source-file").waitFor();
  expect(await heard(page)).toEqual([]);
  await page.context().close();
});

test("a page that is in no frame has no editor around it, whatever its address says", async () => {
  const page = await (await browser.newContext()).newPage();
  await page.addInitScript(() => {
    Object.assign(globalThis, { heard: [] });
    addEventListener("message", ({ data, origin }) => Reflect.get(globalThis, "heard").push({ data, origin }));
  });
  await page.goto(addressAt(SOURCE, new URL(server.url).origin));
  const link = page.getByRole("link", { name: "Open line 36 in the editor" });
  await link.waitFor();
  expect(await link.getAttribute("href")).toBe(`vscode://file${FOLDER}/ddp.py:36`);
  expect(new URL(page.url()).search).toBe("");
  expect(await page.evaluate(() => Reflect.get(globalThis, "heard"))).toEqual([]);
  await page.context().close();
});
