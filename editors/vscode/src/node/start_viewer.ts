// Starts `stepscope view` and waits for its address.

import { type ChildProcess, spawn } from "node:child_process";
import type { Viewer } from "../machine";
import { Trouble } from "../trouble";
import { printedAddress } from "../viewer/address";
import { startTrouble } from "./run_command";

/** What is started. */
export interface ViewerOptions {
  readonly command: string;
  readonly arguments: readonly string[];
  /** Source files below it can be shown. */
  readonly folder: string;
  /** How long it may take until it says its address. */
  readonly limitMs?: number;
}

const LIMIT_MS = 60_000;
/** Characters of what it says that are kept. */
const KEPT = 4_000;
/** Viewers that run; none outlives the editor. */
const running = new Set<ChildProcess>();
let isWatchingExit = false;

/** A viewer of a run folder or a trace file, on a port of its own, which pages may show in a frame. */
export async function startViewer(target: string, options: ViewerOptions): Promise<Viewer> {
  const words = ["view", target, "--port", "0", "--no-browser", "--allow-frame", ...options.arguments];
  const child = spawn(options.command, words, { cwd: options.folder, stdio: ["ignore", "pipe", "pipe"] });
  follow(child);
  let [said, complaints] = ["", ""];
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code, signal) => resolve(withoutGreeting(complaints) || `it ended with ${signal ?? code}`));
  });
  child.stderr.on("data", (data) => {
    complaints = (complaints + data).slice(-KEPT);
  });
  const address = new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (data) => {
      said = (said + data).slice(-KEPT);
      const printed = printedAddress(said);
      if (printed !== null) resolve(printed);
    });
    child.once("error", (error) => reject(startTrouble(error, options.command, options.folder)));
    void ended.then((why) => {
      reject(new Trouble("`stepscope view` could not open this", why, target));
    });
    const hint = "Try the same in a terminal: stepscope view, with the path.";
    const late = () => reject(new Trouble("`stepscope view` does not say its address", hint, target));
    setTimeout(late, options.limitMs ?? LIMIT_MS).unref();
  });
  let isWanted = true;
  const dispose = () => {
    isWanted = false;
    child.kill("SIGTERM");
  };
  const onEnd = (then: (why: string) => void) => {
    void ended.then((why) => {
      if (isWanted) then(why);
    });
  };
  try {
    return { address: await address, onEnd, dispose };
  } catch (error) {
    dispose();
    throw error;
  }
}

function follow(child: ChildProcess): void {
  running.add(child);
  child.once("close", () => running.delete(child));
  child.once("error", () => running.delete(child));
  if (isWatchingExit) return;
  isWatchingExit = true;
  process.once("exit", () => {
    for (const each of running) each.kill("SIGTERM");
  });
}

/** What it said, without the line that says that it serves. */
const withoutGreeting = (said: string): string => said.replace(/^stepscope: serving .*$/m, "").trim();
