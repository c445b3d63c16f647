// What both entries have in common: everything but the machine below.

import { commands, type ExtensionContext, type Uri, window } from "vscode";
import { followHotLines } from "./hot_lines/follow";
import type { Machine } from "./machine";
import { followRunFolders } from "./run_folders";
import { chooseRun } from "./targets";
import { wordsOf } from "./trouble";
import { openRun, registerRunEditor } from "./viewer/run_editor";

/** Registers all that `package.json` promises. */
export function start(context: ExtensionContext, machine: Machine): void {
  const hot = followHotLines(context);
  /** A command that says what went wrong. */
  const command = (name: string, act: (uri?: Uri) => Promise<void>) =>
    commands.registerCommand(name, async (uri?: Uri) => {
      try {
        await act(uri);
      } catch (error) {
        void window.showErrorMessage(`Stepscope: ${wordsOf(error)}`);
      }
    });
  context.subscriptions.push(
    registerRunEditor(context.extensionUri, machine),
    command("stepscope.openRun", async (uri) => {
      const chosen = uri ?? (await chooseRun("Open in Stepscope"));
      if (chosen) await openRun(chosen, context.extensionUri, machine);
    }),
    command("stepscope.showHotLines", async (uri) => {
      const chosen = uri ?? (await chooseRun("Show Hot Lines"));
      if (chosen) await hot.show(chosen, machine);
    }),
    command("stepscope.clearHotLines", async () => hot.clear()),
    command("stepscope.recordCurrentFile", async () => {
      const run = await recordCurrent(machine);
      if (!run) return;
      const open = "Open the Run";
      const lines = "Show Hot Lines";
      const chosen = await window.showInformationMessage("Stepscope: the run is recorded.", open, lines);
      if (chosen === open) await openRun(run, context.extensionUri, machine);
      if (chosen === lines) await hot.show(run, machine);
    }),
  );
  // Until it is known, the command is offered: it is what starts the extension where there is no run yet.
  void commands.executeCommand("setContext", "stepscope.cannotRecord", !machine.canRecord);
  followRunFolders(context);
}

/** Records the file that is being edited, as it is on the disk once it is saved. */
async function recordCurrent(machine: Machine): Promise<Uri | undefined> {
  const document = window.activeTextEditor?.document;
  if (document?.languageId !== "python" || document.isUntitled) {
    void window.showWarningMessage("Stepscope: open a Python file that is saved, and record it then.");
    return undefined;
  }
  if (document.isDirty && !(await document.save())) return undefined;
  return machine.record(document.uri);
}
