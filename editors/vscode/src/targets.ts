// What is opened: a run folder or a trace file.

import { FileType, Uri, window, workspace } from "vscode";
import { recordedMsIn } from "./hot_lines/freshness";

/** The file by which a run folder is known, and through which a custom editor opens it. */
export const MARKER = "run.json";

/** What a file is opened as: the run folder whose marker it is, or itself. */
export const targetOf = (uri: Uri): Uri => (uri.path.endsWith(`/${MARKER}`) ? Uri.joinPath(uri, "..") : uri);

/** Asks for a run folder or a trace file. */
export async function chooseRun(title: string): Promise<Uri | undefined> {
  const options = { title, openLabel: "Open", canSelectFiles: true, canSelectFolders: true, canSelectMany: false };
  const chosen = await window.showOpenDialog({ ...options, defaultUri: workspace.workspaceFolders?.[0]?.uri });
  return chosen?.[0];
}

/** When the run was recorded, as a Unix time in milliseconds: when it began, or when its trace was written. */
export async function recordedMs(target: Uri): Promise<number> {
  const { type, mtime } = await workspace.fs.stat(target);
  if (!(type & FileType.Directory)) return mtime;
  const marker = await textOf(Uri.joinPath(target, MARKER));
  return (marker === null ? null : recordedMsIn(marker)) ?? mtime;
}

/** The text of a file; null when it cannot be read. */
export async function textOf(uri: Uri): Promise<string | null> {
  try {
    return new TextDecoder().decode(await workspace.fs.readFile(uri));
  } catch {
    return null;
  }
}

/** Whether there is a file or a folder. */
export async function exists(uri: Uri): Promise<boolean> {
  try {
    await workspace.fs.stat(uri);
    return true;
  } catch {
    return false;
  }
}
