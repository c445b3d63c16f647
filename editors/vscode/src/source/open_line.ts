// Opens the line of a file that a run names, beside the viewer.

import { Position, Range, TextEditorRevealType, Uri, ViewColumn, window, workspace } from "vscode";
import { settings } from "../settings";
import { exists } from "../targets";
import type { OpenRequest } from "../viewer/open_message";
import { type Found, findFile } from "./find_file";

/** Files that a person chose, by what runs call them: asked once. */
const chosen = new Map<string, Uri>();
const MAX_FOUND = 200;

/** Opens a line beside the viewer, which is in column `viewer`; asks where the file is when that is not certain. */
export async function openLine({ file, line }: OpenRequest, viewer: ViewColumn = ViewColumn.One): Promise<void> {
  const uri = chosen.get(file) ?? (await locate(file));
  if (!uri) return;
  const document = await workspace.openTextDocument(uri);
  const last = document.lineCount - 1;
  const start = new Position(Math.min(line - 1, last), 0);
  const options = { viewColumn: columnBeside(viewer, uri), selection: new Range(start, start) };
  const editor = await window.showTextDocument(document, options);
  editor.revealRange(new Range(start, start), TextEditorRevealType.InCenter);
  if (line - 1 > last) {
    const why = `it has ${last + 1} lines: it has changed since the run`;
    void window.showWarningMessage(`Stepscope: there is no line ${line} in ${workspace.asRelativePath(uri)}, ${why}.`);
  }
}

/**
 * The column that shows the file already, or else another file. `ViewColumn.Beside` is no use: what is in a frame does not
 * count as active, so that each click would open one column more.
 */
function columnBeside(viewer: ViewColumn, uri: Uri): ViewColumn {
  const others = window.visibleTextEditors.filter(
    ({ viewColumn }) => viewColumn !== undefined && viewColumn !== viewer,
  );
  const same = others.find(({ document }) => document.uri.toString() === uri.toString());
  return (same ?? others[0])?.viewColumn ?? viewer + 1;
}

/** Where a file of a run is, when that is certain; never asks. */
export async function certainFile(file: string): Promise<Uri | undefined> {
  const known = chosen.get(file);
  if (known) return known;
  const found = await find(file);
  return found.kind === "file" ? at(found.path) : undefined;
}

async function locate(file: string): Promise<Uri | undefined> {
  const found = await find(file);
  if (found.kind === "file") return at(found.path);
  const uri = await ask(file, found);
  if (uri) chosen.set(file, uri);
  return uri;
}

async function ask(file: string, found: Exclude<Found, { kind: "file" }>): Promise<Uri | undefined> {
  if (found.kind === "several") {
    const items = found.paths.map((path) => ({ label: workspace.asRelativePath(at(path)), path }));
    const picked = await window.showQuickPick(items, { title: `Which file is ${file}?` });
    return picked && at(picked.path);
  }
  if (found.kind === "outside") {
    const open = "Open It";
    const words = `Stepscope: ${file} is outside of the workspace.`;
    return (await window.showWarningMessage(words, open)) === open ? at(found.path) : undefined;
  }
  const choose = "Choose the File…";
  const hint = "Name its folder in the setting stepscope.sourceMap, or choose it.";
  const words = `Stepscope: ${file} is not in the workspace. ${hint}`;
  if ((await window.showWarningMessage(words, choose)) !== choose) return undefined;
  const files = await window.showOpenDialog({ title: `Where is ${file}?`, canSelectMany: false });
  return files?.[0];
}

const find = (file: string): Promise<Found> =>
  findFile(file, {
    folders: (workspace.workspaceFolders ?? []).map((folder) => folder.uri.path),
    replaced: settings().sourceMap,
    exists: (path) => exists(at(path)),
    named: async (name) => {
      // Also what the search leaves out, such as an environment in the workspace.
      const found = await workspace.findFiles(`**/${escaped(name)}`, null, MAX_FOUND);
      return found.map((uri) => uri.path);
    },
  });

/** A path where the files of the workspace are. */
function at(path: string): Uri {
  const folders = workspace.workspaceFolders ?? [];
  const around = folders.find((folder) => path.startsWith(`${folder.uri.path}/`)) ?? folders[0];
  return around ? around.uri.with({ path }) : Uri.file(path);
}

/** A name in a pattern, where it means itself. */
const escaped = (name: string): string => name.replace(/[*?[\]{}]/g, (character) => `[${character}]`);
