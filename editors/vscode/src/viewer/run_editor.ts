// Runs and traces in an editor of their own, and in a panel where there is no file to open.

import {
  type CustomReadonlyEditorProvider,
  commands,
  type Disposable,
  FileType,
  Uri,
  ViewColumn,
  window,
  workspace,
} from "vscode";
import type { Machine } from "../machine";
import { exists, MARKER, targetOf } from "../targets";
import { showViewer } from "./panel";

/** As `package.json` names it. */
const VIEW_TYPE = "stepscope.run";
const WEBVIEW = { retainContextWhenHidden: true };

/** The custom editor of trace files, and of the marker of run folders. */
export function registerRunEditor(extension: Uri, machine: Machine): Disposable {
  const provider: CustomReadonlyEditorProvider = {
    openCustomDocument: (uri) => ({ uri, dispose: () => undefined }),
    resolveCustomEditor: (document, panel) => showViewer(panel, targetOf(document.uri), extension, machine),
  };
  return window.registerCustomEditorProvider(VIEW_TYPE, provider, { webviewOptions: WEBVIEW });
}

/** Opens a run folder or a trace file. A folder without a marker, such as one of traces, gets a panel. */
export async function openRun(uri: Uri, extension: Uri, machine: Machine): Promise<void> {
  const isFolder = ((await workspace.fs.stat(uri)).type & FileType.Directory) !== 0;
  const file = isFolder ? Uri.joinPath(uri, MARKER) : uri;
  if (!isFolder || (await exists(file))) {
    await commands.executeCommand("vscode.openWith", file, VIEW_TYPE);
    return;
  }
  const title = uri.path.split("/").at(-1) ?? "Stepscope";
  const panel = window.createWebviewPanel("stepscope.folder", title, ViewColumn.Active, WEBVIEW);
  await showViewer(panel, uri, extension, machine);
}
