// The real command: `stepscope view`, and `stepscope analyze` to compare its numbers with the pages'.

import { execFileSync, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseExact } from "../../src/api/json";
import type { Envelope, Report } from "../../src/api/types";

/** The folder that this repository is checked out to. */
export const CHECKOUT = fileURLToPath(new URL("../../..", import.meta.url));
/** The command under test. */
const COMMAND = process.env.STEPSCOPE ?? `${CHECKOUT}target/release/stepscope`;

/** A program that records itself while it is looked at: `crates/stepscope/examples/lines.rs`. */
export const WRITER = process.env.STEPSCOPE_WRITER ?? `${CHECKOUT}target/release/examples/lines`;

/** Writes a simulated job as traces: `crates/export/examples/simulated.rs`. */
const SIMULATED = process.env.STEPSCOPE_SIMULATED ?? `${CHECKOUT}target/release/examples/simulated`;

/** The ranks of a simulated job, a file each, in `folder`. Rank 1 is slow. */
export function simulate(folder: string, ranks: number, steps: number, schedule: "pipeline" | "ddp"): void {
  execFileSync(SIMULATED, [folder, String(ranks), String(steps), schedule]);
}

/** A server that is running. */
export interface View {
  /** The address that it printed, with the token. */
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** Starts `stepscope view` on the inputs, and waits for its address. `state` is the user's folder of state, `more` more of its environment. */
export function view(
  inputs: readonly string[],
  options: readonly string[] = [],
  state = "",
  more: Readonly<Record<string, string>> = {},
): Promise<View & { readonly pid: number }> {
  const env = { ...process.env, XDG_STATE_HOME: state, ...more };
  const server = spawn(COMMAND, ["view", "--no-browser", ...options, ...inputs], { cwd: CHECKOUT, env });
  const ended = new Promise<void>((resolve) => server.on("close", () => resolve()));
  const stop = () => {
    server.kill("SIGTERM");
    return ended;
  };
  return new Promise((resolve, reject) => {
    let said = "";
    let complaints = "";
    server.stderr.on("data", (data) => {
      complaints += data;
    });
    server.stdout.on("data", (data) => {
      said += data;
      const url = /http:\/\/\S+/.exec(said)?.[0];
      if (url && said.includes("\n")) resolve({ url, pid: server.pid ?? 0, stop });
    });
    server.on("error", reject);
    server.on("close", (code) => reject(new Error(`stepscope view ended with ${code}: ${complaints}`)));
  });
}

/** What the command line says: the whole result of an analysis. */
export function analyze(name: string, input: string, ...options: string[]): Envelope {
  return command("analyze", name, input, "--json", ...options) as Envelope;
}

/** What the command line says: two runs side by side. */
export function compare(a: string, b: string, what: string, ...options: string[]): Envelope {
  return command("compare", a, b, "--what", what, "--json", ...options) as Envelope;
}

/** What the command line says: the report. */
export function report(input: string, ...options: string[]): Report {
  return command("report", input, "--json", ...options) as Report;
}

/** Writes a run or a trace as another file. */
export function convert(input: string, output: string): void {
  execFileSync(COMMAND, ["convert", input, "-o", output], { cwd: CHECKOUT });
}

function command(...words: string[]): unknown {
  return parseExact(execFileSync(COMMAND, words, { cwd: CHECKOUT, maxBuffer: 1 << 30 }).toString());
}
