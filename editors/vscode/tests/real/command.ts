// The real command, on a workspace made for the test.

import { mkdtempSync, realpathSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { commandOutput } from "../../src/node/run_command";
import { PROGRAM, sampleTrace } from "./sample_trace";

/** The command under test. */
export const COMMAND =
  process.env.STEPSCOPE ?? fileURLToPath(new URL("../../../../target/release/stepscope", import.meta.url));

/** A folder with a program and its trace. */
export interface Workspace {
  readonly folder: string;
  readonly program: string;
  readonly trace: string;
  readonly remove: () => void;
}

/** The program is older than its trace. */
export function makeWorkspace(): Workspace {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "stepscope-editor-")));
  const [program, trace] = [join(folder, "train.py"), join(folder, "job.pt.trace.json")];
  writeFileSync(program, PROGRAM);
  writeFileSync(trace, sampleTrace());
  utimesSync(program, new Date(2025, 0, 1), new Date(2025, 0, 1));
  return { folder, program, trace, remove: () => rmSync(folder, { recursive: true }) };
}

/** What the command says of the trace. */
export const analyzed = (analysis: string, { trace, folder }: Workspace): Promise<string> =>
  commandOutput(COMMAND, ["analyze", analysis, trace, "--json"], folder);
