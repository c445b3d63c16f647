// What is looked at: a run of our own, a trace of torch.profiler, a run of two ranks, a trace of DFTracer, and whatever else
// a person has.

import { existsSync } from "node:fs";
import { CHECKOUT } from "./stepscope";

const OWN = [
  "tests/fixtures/gpt-cpu",
  "tests/fixtures/kineto/a100_alexnet_sync.json.gz",
  "tests/fixtures/ddp-cpu",
  "tests/fixtures/dftracer/wheel-2.2.0",
];

/** Inputs named by `STEPSCOPE_TEST_INPUTS`, separated by `:`, beside those of the repository. */
const MORE = (process.env.STEPSCOPE_TEST_INPUTS ?? "").split(":").filter((input) => input !== "");

export const INPUTS: readonly string[] = [...OWN.map((input) => CHECKOUT + input), ...MORE];
for (const input of INPUTS) if (!existsSync(input)) throw new Error(`there is no ${input}`);

/** A run that was recorded on a processor. */
export const RUN = INPUTS[0] as string;
/** A trace with a device. */
export const TRACE = INPUTS[1] as string;
/** A run of two ranks, with call stacks. */
export const RANKS = INPUTS[2] as string;
/** A trace of calls on files. */
export const FILES = INPUTS[3] as string;
