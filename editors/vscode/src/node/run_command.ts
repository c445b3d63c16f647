// Runs `stepscope` once, for what it prints.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { Trouble } from "../trouble";

const MAX_BYTES = 1 << 28;

/** What the command prints with these arguments. */
export function commandOutput(command: string, words: readonly string[], folder: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(command, words, { cwd: folder, maxBuffer: MAX_BYTES }, (error, output, complaints) => {
      if (error === null) resolve(output);
      else if (typeof error.code === "string") reject(startTrouble(error, command, folder));
      else {
        const said = complaints.trim().replace(/^error: /, "") || error.message;
        reject(new Trouble(`\`stepscope ${words[0]}\` failed`, said));
      }
    });
  });
}

/** Why a program cannot be started, and what to do. */
export function startTrouble(
  error: { code?: string | number | null; message: string },
  command: string,
  folder: string,
): Trouble {
  if (error.code === "ENOENT" && !existsSync(folder)) {
    return new Trouble("there is no such folder to start `stepscope` in", "Open a folder that exists.", folder);
  }
  const hint =
    "Install Stepscope, and name its command in the setting `stepscope.command`, such as `.venv/bin/stepscope`.";
  if (error.code === "ENOENT") return new Trouble("the command `stepscope` was not found", hint, command);
  return new Trouble(`\`stepscope\` cannot be started (${error.code ?? error.message})`, hint, command);
}
