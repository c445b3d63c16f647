// With programs that play the command; `tests/real` has the command itself.

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { wordsOf } from "../trouble";
import { commandOutput } from "./run_command";
import { runName } from "./run_name";
import { startViewer } from "./start_viewer";

const folder = mkdtempSync(join(tmpdir(), "stepscope-editor-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A program that does this. */
function program(name: string, script: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

const options = (command: string) => ({ command, arguments: ["--memory", "1GiB"], folder });
/** Why it could not be started. */
const why = (promise: Promise<unknown>) => promise.then(() => "it started", wordsOf);

test("the command is told what to serve and how, and says its address", async () => {
  const command = program(
    "serves",
    'echo "http://127.0.0.1:1/?token=a&words=$(echo "$@" | tr " " "+")"\nexec sleep 600',
  );
  const viewer = await startViewer("/runs/a", options(command));
  const words = new URL(viewer.address).searchParams.get("words");
  expect(words).toBe("view /runs/a --port 0 --no-browser --allow-frame --memory 1GiB");
  viewer.dispose();
});

test("a viewer that ends by itself says why; one that is disposed of says nothing", async () => {
  const reading = 'echo "http://127.0.0.1:1/?token=a"\necho "stepscope: serving 1 input · Ctrl-C ends it" >&2';
  const dies = await startViewer("a", options(program("dies", `${reading}\necho "no memory" >&2\nexit 3`)));
  expect(await new Promise((resolve) => dies.onEnd(resolve))).toBe("no memory");
  const stays = await startViewer("a", options(program("stays", `${reading}\nexec sleep 600`)));
  const said: string[] = [];
  stays.onEnd((why) => said.push(why));
  stays.dispose();
  // What ended before is reported before.
  const next = await startViewer("a", options(program("next", `${reading}\nexit 0`)));
  expect(await new Promise((resolve) => next.onEnd(resolve))).toBe("it ended with 0");
  expect(said).toEqual([]);
});

test("a command that is missing is named, with what to do", async () => {
  const missing = join(folder, "missing");
  const words = await why(startViewer("a", options(missing)));
  expect(words).toBe(
    `the command \`stepscope\` was not found: ${missing}. Install Stepscope, and name its command in the setting ` +
      "`stepscope.command`, such as `.venv/bin/stepscope`.",
  );
  expect(await why(commandOutput(missing, ["analyze"], folder))).toBe(words);
});

test("a missing command and a missing folder give different errors", async () => {
  const text = join(folder, "text");
  writeFileSync(text, "");
  expect(await why(startViewer("a", options(text)))).toContain("cannot be started (EACCES)");
  const gone = { ...options(program("fine", "exec sleep 600")), folder: join(folder, "gone") };
  expect(await why(startViewer("a", gone))).toContain(`no such folder to start \`stepscope\` in: ${gone.folder}`);
});

test("a command that refuses is quoted", async () => {
  const refuses = program("refuses", 'echo "error: this is no trace" >&2\nexit 1');
  expect(await why(startViewer("x.json", options(refuses)))).toBe(
    "`stepscope view` could not open this: x.json. error: this is no trace",
  );
  expect(await why(commandOutput(refuses, ["analyze"], folder))).toBe("`stepscope analyze` failed. this is no trace");
});

test("a command that says no address is ended", async () => {
  const silent = { ...options(program("silent", "exec sleep 600")), limitMs: 50 };
  expect(await why(startViewer("a", silent))).toContain("does not say its address");
});

test("a run is named as the command names it", () => {
  expect(runName("/a/train.v2.py", new Date(Date.UTC(2026, 0, 2, 3, 4, 5, 999)))).toBe("20260102-030405-train.v2");
});
