// The entry where there is a machine that runs programs.

import { dirname } from "node:path";
import { type ExtensionContext, Uri, workspace } from "vscode";
import { start } from "./extension";
import type { Machine } from "./machine";
import { recordFile } from "./node/record_file";
import { commandOutput } from "./node/run_command";
import { startViewer } from "./node/start_viewer";
import { settings } from "./settings";
import { Trouble } from "./trouble";

export function activate(context: ExtensionContext): void {
  start(context, MACHINE);
}

const MACHINE: Machine = {
  canRecord: true,
  startViewer: async (target) => {
    const { command, viewArguments } = settings();
    return startViewer(pathOf(target), {
      command: programPath(command, target),
      arguments: [...sourceFolders(), ...viewArguments],
      folder: folderOf(target),
    });
  },
  lineResults: async (target) => {
    const command = programPath(settings().command, target);
    const result = (analysis: string) =>
      commandOutput(command, ["analyze", analysis, pathOf(target), "--json"], folderOf(target));
    const sourceLines = await result("source_lines");
    return { sourceLines, stepBreakdown: await result("step_breakdown") };
  },
  record: async (file) => {
    const { command, python, recordArguments } = settings();
    // A task that cannot start says little: so what is missing is said before.
    await commandOutput(programPath(command, file), ["--version"], folderOf(file));
    const program = { command: programPath(command, file), python: programPath(python, file), recordArguments };
    return recordFile(pathOf(file), folderOf(file), program);
  },
};

function pathOf(uri: Uri): string {
  if (uri.scheme === "file") return uri.fsPath;
  throw new Trouble("this is no file of the machine that runs the extension", "Copy it to a folder there.", uri.path);
}

/** Where the command is started: in the workspace, so that it finds the sources. */
const folderOf = (uri: Uri): string => workspace.getWorkspaceFolder(uri)?.uri.fsPath ?? dirname(pathOf(uri));

/** A program below the workspace may be named from its folder: `.venv/bin/stepscope`. */
function programPath(program: string, uri: Uri): string {
  const isRelative = /^[^/\\]+[/\\]/.test(program) && !/^[A-Za-z]:/.test(program);
  const folder = workspace.getWorkspaceFolder(uri) ?? workspace.workspaceFolders?.[0];
  return isRelative && folder ? Uri.joinPath(folder.uri, program).fsPath : program;
}

/** Sources of every folder of the workspace can be shown. */
const sourceFolders = (): string[] =>
  (workspace.workspaceFolders ?? [])
    .filter(({ uri }) => uri.scheme === "file")
    .flatMap(({ uri }) => ["--source", uri.fsPath]);
