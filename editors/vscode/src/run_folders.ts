// The run folders of the workspace: the Explorer offers to open these, and no other folder.

import { commands, type ExtensionContext, type Uri, workspace } from "vscode";
import { recordedMsIn } from "./hot_lines/freshness";
import { MARKER, targetOf, textOf } from "./targets";

const MAX_FOLDERS = 500;

/** Keeps the list, under the name that `package.json` asks for, as runs come and go. */
export function followRunFolders(context: ExtensionContext): void {
  const folders = new Set<string>();
  const tell = () => void commands.executeCommand("setContext", "stepscope.runFolders", [...folders]);
  const add = async (marker: Uri) => {
    const text = await textOf(marker);
    if (text === null || recordedMsIn(text) === null) return;
    // The Explorer names a folder by its path on the disk.
    folders.add(targetOf(marker).fsPath);
    tell();
  };
  const remove = (marker: Uri) => {
    if (folders.delete(targetOf(marker).fsPath)) tell();
  };
  const watcher = workspace.createFileSystemWatcher(`**/${MARKER}`);
  context.subscriptions.push(watcher, watcher.onDidCreate(add), watcher.onDidChange(add), watcher.onDidDelete(remove));
  void workspace
    .findFiles(`**/${MARKER}`, "**/node_modules/**", MAX_FOLDERS)
    .then((found) => Promise.all(found.map(add)));
}
