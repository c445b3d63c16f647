// Records a Python file in a terminal, and says where the run is.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { ProcessExecution, Task, TaskScope, tasks, Uri } from "vscode";
import { runName } from "./run_name";

/** What runs the file. */
export interface Recording {
  readonly command: string;
  readonly python: string;
  readonly recordArguments: readonly string[];
}

/** Runs the file below `stepscope record`; the run's folder once it has ended. A program that fails leaves a run, too. */
export async function recordFile(file: string, folder: string, recording: Recording): Promise<Uri | undefined> {
  const { command, python, recordArguments } = recording;
  const run = join(folder, "stepscope-runs", runName(file, new Date()));
  const words = ["record", "-o", run, ...recordArguments, "--", python, file];
  const execution = new ProcessExecution(command, words, { cwd: folder });
  const task = new Task({ type: "stepscope" }, TaskScope.Workspace, "record", "stepscope", execution);
  const started = await tasks.executeTask(task);
  await new Promise<void>((resolve) => {
    const watch = tasks.onDidEndTask((event) => {
      if (event.execution !== started) return;
      watch.dispose();
      resolve();
    });
  });
  return existsSync(join(run, "run.json")) ? Uri.file(run) : undefined;
}
