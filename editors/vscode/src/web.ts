// The entry in a browser, where no program can be started: a viewer runs elsewhere, and results are files beside the run.

import { type ExtensionContext, FileType, Uri, workspace } from "vscode";
import { start } from "./extension";
import type { Machine } from "./machine";
import { settings } from "./settings";
import { textOf } from "./targets";
import { Trouble } from "./trouble";
import { givenAddress } from "./viewer/address";

export function activate(context: ExtensionContext): void {
  start(context, MACHINE);
}

const MACHINE: Machine = {
  canRecord: false,
  startViewer: async () => {
    const { viewerAddress } = settings();
    if (viewerAddress === "") {
      const hint =
        "Run `stepscope view RUN --allow-frame` and put the address that it prints into `stepscope.viewerAddress`.";
      throw new Trouble("this editor can start no viewer", hint);
    }
    return { address: givenAddress(viewerAddress), onEnd: () => undefined, dispose: () => undefined };
  },
  lineResults: async (target) => {
    const [lines, steps] = [await resultFile(target, "source_lines"), await resultFile(target, "step_breakdown")];
    const sourceLines = await textOf(lines);
    if (sourceLines !== null) return { sourceLines, stepBreakdown: await textOf(steps) };
    const hint = "Make it with `stepscope analyze source_lines RUN --json -o FILE`, where the command can run.";
    throw new Trouble("this editor can compute no hot lines, and there is no result of them", hint, lines.path);
  },
  record: async () => {
    throw new Trouble("this editor can record nothing", "Open the folder in VS Code on a machine, or by Remote-SSH.");
  },
};

/** `RUN/source_lines.json`, or `trace.json.source_lines.json` beside a trace. */
async function resultFile(target: Uri, analysis: string): Promise<Uri> {
  const isFolder = ((await workspace.fs.stat(target)).type & FileType.Directory) !== 0;
  return isFolder ? Uri.joinPath(target, `${analysis}.json`) : target.with({ path: `${target.path}.${analysis}.json` });
}
