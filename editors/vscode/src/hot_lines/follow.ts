// Keeps hot lines where they belong while editors open, change and close.

import {
  type CodeLens,
  type Disposable,
  EventEmitter,
  type ExtensionContext,
  languages,
  StatusBarAlignment,
  type TextDocument,
  type TextEditor,
  type Uri,
  window,
  workspace,
} from "vscode";
import type { Machine } from "../machine";
import { settings } from "../settings";
import { decoration, decorationsOf, lensesOf } from "./appearance";
import { type DocumentLines, RunLines } from "./shown";

/** What commands do with hot lines. */
export interface HotLineCommands {
  readonly show: (target: Uri, machine: Machine) => Promise<void>;
  readonly clear: () => void;
}

/** Hot lines of one run at a time, in every editor. */
export function followHotLines(context: ExtensionContext): HotLineCommands {
  let shown: RunLines | null = null;
  const type = decoration();
  const changed = new EventEmitter<void>();
  const status = window.createStatusBarItem("stepscope.hotLines", StatusBarAlignment.Right);
  status.name = "Stepscope: Hot Lines";
  status.command = "stepscope.clearHotLines";

  /** What is in an editor now. */
  const draw = async (editor: TextEditor, run: RunLines): Promise<DocumentLines> => {
    const found = await run.in(editor.document);
    // Meanwhile another run may be shown, or none.
    if (run === shown) editor.setDecorations(type, decorationsOf(editor.document, found.lines, run.hot));
    return found;
  };
  const drawAll = async (): Promise<void> => {
    changed.fire();
    const [run, editors] = [shown, window.visibleTextEditors];
    if (run === null) {
      status.hide();
      for (const editor of editors) editor.setDecorations(type, []);
      return;
    }
    const all = await Promise.all(editors.map((editor) => draw(editor, run)));
    if (run !== shown) return;
    const lines = Math.max(0, ...all.map((found) => found.lines.length));
    const why = all.find((found) => found.why !== null)?.why ?? null;
    status.text = `$(flame) ${why !== null ? "file has changed" : lines > 0 ? `${lines} hot lines` : "no hot lines here"}`;
    status.tooltip = why === null ? "Clear hot lines" : `A file has no hot lines: ${why}. Click to clear all others.`;
    status.show();
  };
  const provideCodeLenses = async (document: TextDocument): Promise<CodeLens[]> => {
    if (shown === null || !settings().hasCodeLens) return [];
    const { hot } = shown;
    return lensesOf(document, (await shown.in(document)).lines, hot);
  };

  const parts: Disposable[] = [
    type,
    changed,
    status,
    languages.registerCodeLensProvider(
      { language: "python" },
      { onDidChangeCodeLenses: changed.event, provideCodeLenses },
    ),
    window.onDidChangeVisibleTextEditors(() => void drawAll()),
    workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      if (shown === null || contentChanges.length === 0) return;
      shown.edited(document);
      void drawAll();
    }),
    workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("stepscope") && void drawAll()),
  ];
  context.subscriptions.push(...parts);
  return {
    show: async (target, machine) => {
      shown = await RunLines.of(target, machine);
      await drawAll();
      await sayWhatIsMissing(shown);
    },
    clear: () => {
      shown = null;
      void drawAll();
    },
  };
}

/** Says of files that are open why they have no hot lines, though the run names them. */
async function sayWhatIsMissing(run: RunLines): Promise<void> {
  for (const { document } of window.visibleTextEditors) {
    const { why } = await run.in(document);
    if (why === null) continue;
    const file = workspace.asRelativePath(document.uri);
    void window.showWarningMessage(`Stepscope: no hot lines are shown in ${file}: ${why}.`);
  }
}
