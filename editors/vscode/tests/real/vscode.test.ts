// The extension in a real VS Code, with a real viewer of a real trace.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Frame, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Viewer } from "../../src/machine";
import { startViewer } from "../../src/node/start_viewer";
import { analyzed, COMMAND, makeWorkspace, type Workspace } from "./command";
import { openVsCode, type VsCode } from "./vscode_web";

let workspace: Workspace;
let viewer: Viewer;
let editor: VsCode;
let page: Page;
beforeAll(async () => {
  workspace = makeWorkspace();
  const { folder, trace } = workspace;
  viewer = await startViewer(trace, { command: COMMAND, arguments: [], folder });
  for (const analysis of ["source_lines", "step_breakdown"])
    writeFileSync(`${trace}.${analysis}.json`, await analyzed(analysis, workspace));
  for (const name of [".vscode", "a-run", "other"]) mkdirSync(join(folder, name));
  writeFileSync(
    join(folder, "a-run", "run.json"),
    '{"format":"stepscope-run","version":1,"created_unix_ns":1,"command":[]}',
  );
  writeFileSync(join(folder, "other", "run.json"), '{"format":"another"}');
  const settings = {
    "stepscope.viewerAddress": viewer.address,
    "stepscope.codeLens": true,
    "workbench.colorTheme": "Default Dark Modern",
  };
  writeFileSync(join(folder, ".vscode", "settings.json"), JSON.stringify(settings));
  editor = await openVsCode(folder);
  page = editor.page;
  page.setDefaultTimeout(60_000);
});
afterAll(async () => {
  await editor?.close();
  viewer?.dispose();
  workspace?.remove();
});

/** Chooses an entry of the menu of a file in the Explorer. */
async function chooseInExplorer(file: string, entry: string): Promise<void> {
  await page.getByRole("treeitem", { name: file, exact: true }).click({ button: "right" });
  // A menu takes no click in the moment in which it opens.
  const item = page.getByRole("menuitem", { name: entry, exact: true });
  await item.waitFor();
  const choose = async () => {
    if (await item.isVisible()) await item.click();
    return item.isVisible();
  };
  await expect.poll(choose, { interval: 300 }).toBe(false);
}

/** The viewer's own frame, inside of those of the webview. */
async function viewerFrame(): Promise<Frame> {
  const origin = new URL(viewer.address).origin;
  const find = () => page.frames().find((frame) => frame.url().startsWith(`${origin}/`));
  await expect.poll(find).toBeDefined();
  return find() as Frame;
}

/**
 * Waits for a file beside the viewer, and for the cursor in this line of it. The editor says the line of what has the focus,
 * which a click in a frame may take back later than the file is shown.
 */
async function besideAtLine(line: number): Promise<void> {
  await expect.poll(() => page.locator(".editor-group-container").count()).toBe(2);
  const place = page.getByRole("button", { name: new RegExp(`^Ln ${line}, Col 1`) });
  const isThere = async () => {
    await page.keyboard.press("Control+2");
    return place.isVisible();
  };
  await expect.poll(isThere, { interval: 300 }).toBe(true);
  // Beside it, and in no third place.
  expect(await page.locator(".editor-group-container").count()).toBe(2);
}

/** The words behind lines: style sheets have them, not the text. */
const wordsBehindLines = () =>
  page
    .locator(".view-lines .view-line span")
    .evaluateAll((spans) =>
      spans
        .map((span) => getComputedStyle(span, "::after").content.replaceAll("\u00a0", " ").replace(/^"|"$/g, ""))
        .filter((words) => words.includes("%")),
    );
const wordsAboveLines = () => page.locator(".codelens-decoration").allTextContents();
const HOT = ["80 % · 40.0 µs/step", "100 % · 50.0 µs/step"];

test("a trace opens in the editor when it is asked for, and the viewer has the editor's colours", async () => {
  await page.getByRole("treeitem", { name: "job.pt.trace.json", exact: true }).dblclick();
  await page.locator(".view-lines", { hasText: "schemaVersion" }).waitFor();
  await chooseInExplorer("job.pt.trace.json", "Open in Stepscope");
  const frame = await viewerFrame();
  await frame.locator("main h1", { hasText: "job" }).waitFor();
  expect(await frame.evaluate(() => matchMedia("(prefers-color-scheme: dark)").matches)).toBe(true);
});

test("a click on a frame of a stack opens the file beside the viewer at its line", async () => {
  const frame = await viewerFrame();
  await frame.evaluate(() => {
    location.hash = "operators?group=stack&sort=host_total_ns";
  });
  await frame.locator('tr[data-row="0"]').first().click();
  await frame.locator(".row-detail a", { hasText: "train.py:8" }).click();
  await page.getByRole("tab", { name: /^train.py/ }).waitFor();
  await besideAtLine(8);
  // The viewer is there still.
  expect(await frame.locator("main h1").first().textContent()).toBe("Operators");
});

test("of a file that is elsewhere where the viewer runs, a person is asked once", async () => {
  const frame = await viewerFrame();
  const open = async (line: number) => {
    await frame.evaluate((place) => {
      location.hash = place;
    }, `source?file=train.py&line=${line}`);
    await frame.getByRole("button", { name: `Open line ${line} in the editor` }).click();
  };
  await open(4);
  await page.locator(".quick-input-list").getByRole("option", { name: "train.py" }).click();
  await besideAtLine(4);
  await open(7);
  await besideAtLine(7);
});

test("hot lines stand behind the code and above it, and are cleared", async () => {
  await chooseInExplorer("job.pt.trace.json", "Show Hot Lines of a Run");
  await expect.poll(wordsBehindLines).toEqual(HOT);
  await expect.poll(wordsAboveLines).toEqual(HOT);
  await page.locator(".statusbar-item", { hasText: "2 hot lines" }).locator("a").click();
  await expect.poll(wordsBehindLines).toEqual([]);
  await expect.poll(wordsAboveLines).toEqual([]);
});

test("a file that is no longer what was recorded has none, and it is said why", async () => {
  await chooseInExplorer("job.pt.trace.json", "Show Hot Lines of a Run");
  await expect.poll(wordsBehindLines).toEqual(HOT);
  await page.locator(".view-line", { hasText: "import torch" }).click();
  await page.keyboard.type("#");
  await expect.poll(wordsBehindLines).toEqual([]);
  await expect.poll(wordsAboveLines).toEqual([]);
  await page.locator(".statusbar-item", { hasText: "file has changed" }).waitFor();
  await page.keyboard.press("Control+s");
  await chooseInExplorer("job.pt.trace.json", "Show Hot Lines of a Run");
  await page
    .getByText("no hot lines are shown in train.py: it was changed after the run was recorded")
    .first()
    .waitFor();
  expect(await wordsBehindLines()).toEqual([]);
});

test("of folders, only those of runs are offered to be opened", async () => {
  for (const [folder, offers] of [
    ["other", 0],
    ["a-run", 1],
  ] as const) {
    await page.getByRole("treeitem", { name: folder, exact: true }).click({ button: "right" });
    await page.getByRole("menuitem", { name: "Copy Path" }).waitFor();
    expect(await page.getByRole("menuitem", { name: "Open in Stepscope" }).count()).toBe(offers);
    await page.keyboard.press("Escape");
    await page.getByRole("menuitem", { name: "Copy Path" }).waitFor({ state: "hidden" });
  }
  await chooseInExplorer("a-run", "Open in Stepscope");
  await page.getByRole("tab", { name: /^run.json/ }).waitFor();
});
