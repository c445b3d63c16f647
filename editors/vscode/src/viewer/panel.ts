// A viewer in a webview: from its start to its end.

import { env, Uri, type WebviewPanel, window } from "vscode";
import type { Machine, Viewer } from "../machine";
import { openLine } from "../source/open_line";
import { wordsOf } from "../trouble";
import { bareAddress, reachedBy } from "./address";
import { readOpenRequest } from "./open_message";
import { textPage, viewerPage } from "./webview_page";

/** Has a viewer serve the target and shows it, or why not. It ends with the panel. */
export async function showViewer(panel: WebviewPanel, target: Uri, extension: Uri, machine: Machine): Promise<void> {
  const scripts = Uri.joinPath(extension, "dist");
  panel.webview.options = { enableScripts: true, localResourceRoots: [scripts] };
  const say = (...lines: string[]) => {
    panel.webview.html = textPage(lines, randomText());
  };
  let viewer: Viewer | undefined;
  let isOpen = true;
  panel.onDidDispose(() => {
    isOpen = false;
    viewer?.dispose();
  });
  panel.webview.onDidReceiveMessage((message: unknown) => {
    const request = readOpenRequest(message);
    if (request) openLine(request, panel.viewColumn).then(undefined, complain);
  });
  say("Starting the viewer…");
  try {
    const started = await machine.startViewer(target);
    viewer = started;
    if (!isOpen) return started.dispose();
    const external = await env.asExternalUri(Uri.parse(bareAddress(started.address)));
    if (!isOpen) return;
    started.onEnd((why) => isOpen && say("The viewer has ended.", why, "Close this and open it again."));
    const script = panel.webview.asWebviewUri(Uri.joinPath(scripts, "frame.js")).toString();
    const address = reachedBy(external.toString(), started.address);
    panel.webview.html = viewerPage(address, randomText(), { script, policyNonce: randomText() });
  } catch (error) {
    if (isOpen) say("This cannot be shown.", wordsOf(error));
  }
}

function complain(error: unknown): void {
  void window.showErrorMessage(`Stepscope: the line cannot be opened: ${wordsOf(error)}`);
}

/** 128 random bits, written in hexadecimal. */
function randomText(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
