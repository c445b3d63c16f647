// What the entry for Node does with the command: it serves, answers, and ends.

import { afterAll, beforeAll, expect, test } from "vitest";
import { hotLinesOf } from "../../src/hot_lines/hot_lines";
import { lineWords } from "../../src/hot_lines/words";
import { commandOutput } from "../../src/node/run_command";
import { startViewer } from "../../src/node/start_viewer";
import { wordsOf } from "../../src/trouble";
import { analyzed, COMMAND, makeWorkspace, type Workspace } from "./command";

let workspace: Workspace;
beforeAll(() => {
  workspace = makeWorkspace();
});
afterAll(() => workspace.remove());

/** The answer of the viewer's page, null when nothing answers. */
const answer = (address: string) => fetch(address).catch(() => null);

test("a viewer serves a trace to pages around it, until it is disposed of", async () => {
  const viewer = await startViewer(workspace.trace, { command: COMMAND, arguments: [], folder: workspace.folder });
  const page = await answer(viewer.address);
  expect(page?.status).toBe(200);
  expect(page?.headers.get("x-frame-options")).toBeNull();
  expect(page?.headers.get("content-security-policy")).not.toContain("frame-ancestors");
  const url = new URL(viewer.address);
  const runs = await answer(`${url.origin}/api/runs?token=${url.searchParams.get("token")}`);
  expect(await runs?.json()).toMatchObject([{ name: "job.pt.trace.json" }]);
  viewer.dispose();
  await expect.poll(() => answer(viewer.address), { timeout: 20_000 }).toBeNull();
});

test("what cannot be opened is told in the command's words", async () => {
  const options = { command: COMMAND, arguments: [], folder: workspace.folder };
  const words = await startViewer(`${workspace.folder}/gone.json`, options).then(() => "it started", wordsOf);
  expect(words).toContain("no such file or folder");
  const failed = commandOutput(COMMAND, ["analyze", "source_lines", "gone.json", "--json"], workspace.folder);
  expect(await failed.then(() => "it ran", wordsOf)).toContain("no such file or folder");
});

test("hot lines are those of the command", async () => {
  const hot = hotLinesOf(await analyzed("source_lines", workspace), await analyzed("step_breakdown", workspace));
  expect(hot.lines.map((line) => [line.file, line.line, lineWords(line, hot)])).toEqual([
    ["train.py", 8, "100 % · 50.0 µs/step"],
    ["train.py", 4, "80 % · 40.0 µs/step"],
  ]);
});
