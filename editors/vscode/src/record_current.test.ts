// *Record Current File*, from the command to the program that runs. The editor is played; what it is told to run is run.

import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeEach, expect, test, vi } from "vitest";
import { activate } from "./node";

/** What the played editor was asked for, and what is open in it. */
const editor = vi.hoisted(() => ({
  commands: new Map<string, () => Promise<void>>(),
  settings: {} as Record<string, unknown>,
  document: undefined as
    | { languageId: string; isDirty: boolean; save: () => Promise<boolean>; uri: unknown }
    | undefined,
  folder: "",
  started: [] as string[][],
  told: [] as string[],
  opened: [] as string[],
}));

vi.mock("vscode", () => {
  const uriOf = (path: string) => ({ scheme: "file", fsPath: path, path });
  const ended = new Set<(event: object) => void>();
  class ProcessExecution {
    constructor(
      readonly process: string,
      readonly args: string[],
      readonly options: { cwd: string },
    ) {}
  }
  return {
    ProcessExecution,
    Task: class {
      constructor(...words: [object, number, string, string, ProcessExecution]) {
        this.execution = words[4];
      }
      readonly execution: ProcessExecution;
    },
    TaskScope: { Workspace: 2 },
    Uri: { file: uriOf, joinPath: (uri: { path: string }, ...names: string[]) => uriOf(join(uri.path, ...names)) },
    commands: {
      registerCommand: (name: string, act: () => Promise<void>) => editor.commands.set(name, act),
      executeCommand: () => undefined,
    },
    tasks: {
      executeTask: async ({ execution: { process, args, options } }: { execution: ProcessExecution }) => {
        editor.started.push([process, ...args]);
        const execution = {};
        spawn(process, args, { cwd: options.cwd }).once("close", () => {
          for (const listen of ended) listen({ execution });
        });
        return execution;
      },
      onDidEndTask: (listen: (event: object) => void) => {
        ended.add(listen);
        return { dispose: () => ended.delete(listen) };
      },
    },
    window: {
      get activeTextEditor() {
        return editor.document && { document: editor.document };
      },
      showErrorMessage: async (words: string) => void editor.told.push(words),
      showWarningMessage: async (words: string) => void editor.told.push(words),
      showInformationMessage: async (words: string, ...choices: string[]) => {
        editor.told.push([words, ...choices].join(" | "));
        return choices[0];
      },
    },
    workspace: {
      getConfiguration: () => ({ get: (name: string, usual: unknown) => editor.settings[name] ?? usual }),
      getWorkspaceFolder: () => ({ uri: uriOf(editor.folder) }),
    },
  };
});
vi.mock("./hot_lines/follow", () => ({ followHotLines: () => ({}) }));
vi.mock("./run_folders", () => ({ followRunFolders: () => undefined }));
vi.mock("./viewer/run_editor", () => ({
  registerRunEditor: () => undefined,
  openRun: async (run: { fsPath: string }) => void editor.opened.push(run.fsPath),
}));

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});
beforeEach(() => Object.assign(editor, { started: [], told: [], opened: [], settings: {}, document: undefined }));

/** A workspace, and a program in it that plays the command: it writes down what it is told, and this script goes on. */
function workspace(name: string, script: string): { folder: string; command: string } {
  const folder = mkdtempSync(join(tmpdir(), name));
  folders.push(folder);
  const command = join(folder, "stepscope");
  const words = `[ "$1" = --version ] && exit\nprintf '%s\\n' "$PWD" "$@" > words`;
  writeFileSync(command, `#!/bin/sh\n${words}\n${script}\n`);
  chmodSync(command, 0o755);
  editor.folder = folder;
  editor.settings.command = "./stepscope";
  return { folder, command };
}

/** Runs the command with a file open in the editor. */
async function recordCurrentFile(file: string, languageId = "python"): Promise<void> {
  const uri = { scheme: "file", fsPath: file, path: file };
  const save = async () => {
    writeFileSync(file, "saved");
    return true;
  };
  editor.document = { languageId, isDirty: true, save, uri };
  activate({ subscriptions: [] } as never);
  await editor.commands.get("stepscope.recordCurrentFile")?.();
}

test.each(["train.py", "my model.py"])(
  "%s is saved, recorded in the workspace, and its run is offered",
  async (name) => {
    const { folder, command } = workspace("a workspace-", 'mkdir -p "$3" && touch "$3/run.json"');
    const file = join(folder, name);
    await recordCurrentFile(file);
    expect(readFileSync(file, "utf8")).toBe("saved");
    const [words = []] = editor.started;
    const run = words[3] ?? "";
    expect(words).toEqual([command, "record", "-o", run, "--stacks", "--", "python", file]);
    expect(dirname(run)).toBe(join(folder, "stepscope-runs"));
    expect(run).toMatch(new RegExp(`/\\d{8}-\\d{6}-${name.slice(0, -3)}$`));
    // As the program itself has them.
    expect(readFileSync(join(folder, "words"), "utf8").trimEnd().split("\n")).toEqual([folder, ...words.slice(1)]);
    expect(editor.told).toEqual(["Stepscope: the run is recorded. | Open the Run | Show Hot Lines"]);
    expect(editor.opened).toEqual([run]);
  },
);

test("interpreter and options are those of the settings", async () => {
  const { folder } = workspace("settings-", "exit 1");
  Object.assign(editor.settings, { python: ".venv/bin/python", recordArguments: ["--shapes", "--memory"] });
  const file = join(folder, "train.py");
  await recordCurrentFile(file);
  const [words = []] = editor.started;
  expect(words.slice(4)).toEqual(["--shapes", "--memory", "--", join(folder, ".venv/bin/python"), file]);
  // It left no run: nothing is offered.
  expect(editor.told).toEqual([]);
});

test("a file of another language is not recorded, nor is anything where the command is missing", async () => {
  const { folder, command } = workspace("missing-", "");
  await recordCurrentFile(join(folder, "notes.md"), "markdown");
  expect(editor.told).toEqual(["Stepscope: open a Python file that is saved, and record it then."]);
  rmSync(command);
  await recordCurrentFile(join(folder, "train.py"));
  expect(editor.told[1]).toContain(`the command \`stepscope\` was not found: ${command}`);
  expect(editor.started).toEqual([]);
});
