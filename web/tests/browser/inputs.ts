// What is looked at: a run of one process, a trace of a GPU, a run of two ranks, a trace of DFTracer, and whatever else a
// person has.

import { existsSync } from "node:fs";
import { CHECKOUT } from "./stepscope";

/** Where real traces are, when this machine has them. */
const TRACES = process.env.STEPSCOPE_TRACES ?? `${CHECKOUT}../shared/traces`;
const LARGE = `${TRACES}/kineto/h100_qwen_stacks_memory.json.gz`;

const V100 = ["v100_resnet50_old_schema.pt.trace.json.gz", "v100_ns_resolution.json.gz"].map(
  (name) => `${TRACES}/kineto/${name}`,
);
/** Two trainings with steps, on one kind of device, where this machine has them. */
export const STEPS: readonly (readonly [string, string])[] = V100.every((path) => existsSync(path))
  ? [[V100[1] as string, V100[0] as string]]
  : [];

/** Traces that no other test looks at, where this machine has them: what a person opens who knows none of ours. */
export const STRANGE: readonly string[] = ["mi300_qwen_stacks_memory", "b200_eager_8gpu_stacks", "a100_ddp_nccl_rank"]
  .map((name) => `${TRACES}/kineto/${name}.json.gz`)
  .filter((path) => existsSync(path));

/** A run that was recorded on a processor. */
export const RUN = `${CHECKOUT}tests/fixtures/gpt-cpu`;
/** A trace with a device: with stacks and memory, or else one of the repository, which has neither. */
export const TRACE = existsSync(LARGE) ? LARGE : `${CHECKOUT}tests/fixtures/kineto/a100_alexnet_sync.json.gz`;
/** A run of two ranks, with call stacks. */
export const RANKS = `${CHECKOUT}tests/fixtures/ddp-cpu`;
/** A run whose samples are files that workers of a DataLoader read. */
export const LOADER = `${CHECKOUT}tests/fixtures/loader-cpu`;
/** A trace of calls on files. */
export const FILES = `${CHECKOUT}tests/fixtures/dftracer/wheel-2.2.0`;

/** One with advice on files, where this machine has it. */
export const SLOW_FILES = `${TRACES}/dftracer/dlio_resnet50_v1.pfw.gz`;

/** A job that hangs: what the Flight Recorders of its ranks wrote. */
export const HANG = `${CHECKOUT}tests/fixtures/flight-recorder/missing`;

/** Inputs named by `STEPSCOPE_TEST_INPUTS`, separated by `:`. */
const MORE = (process.env.STEPSCOPE_TEST_INPUTS ?? "").split(":").filter((input) => input !== "");

export const INPUTS: readonly string[] = [RUN, TRACE, RANKS, FILES, ...MORE];
for (const input of INPUTS) if (!existsSync(input)) throw new Error(`there is no ${input}`);
