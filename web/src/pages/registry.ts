// Every page: what it is called, what it needs, and where its code is. A page is loaded when it is first opened.

import type { ComponentType } from "preact";
import type { RunDetail } from "../api/types";
import { about, runs } from "../state/runs";

export interface PageInfo {
  readonly id: string;
  readonly title: string;
  /** What a person finds there, for the search of pages. */
  readonly about: string;
  /** Why there is nothing to show, and what would record it; null when there is something. */
  readonly missing: (detail: RunDetail) => string | null;
  readonly load: () => Promise<{ default: ComponentType }>;
}

const always = () => null;
const missingDevices = ({ has }: RunDetail) =>
  has.devices
    ? null
    : "No work of a device was recorded: the job used none, or its profiler could not be used; `stepscope doctor` says which.";

export const PAGES: readonly PageInfo[] = [
  {
    id: "overview",
    title: "Overview",
    about: "Verdict, advice, steps, breakdown, devices, environment, findings",
    missing: always,
    load: () => import("./overview/Overview"),
  },
  {
    id: "timeline",
    title: "Timeline",
    about: "Everything that happened, by rank, device and thread: zoom, search, select, follow arrows",
    missing: ({ counts }) => (Number(counts.slices) > 0 ? null : "Nothing with a duration was recorded."),
    load: () => import("./timeline/Timeline"),
  },
  {
    id: "idle",
    title: "Why idle",
    about: "Why devices idle, the longest gaps, the critical path, waits for devices, queues",
    missing: missingDevices,
    load: () => import("./idle/Idle"),
  },
  {
    id: "operators",
    title: "Operators",
    about: "Calls and times of operators, by name, shapes, stack, module or category",
    missing: always,
    load: () => import("./operators/Operators"),
  },
  {
    id: "kernels",
    title: "Kernels",
    about: "Times, occupancy and launches of kernels",
    missing: missingDevices,
    load: () => import("./kernels/Kernels"),
  },
  {
    id: "modules",
    title: "Modules",
    about: "The tree of modules with forward, backward, device time and memory; flame graph",
    missing: ({ has }) =>
      has.modules
        ? null
        : "No calls of modules were recorded: `stepscope record` does, without `--no-modules`; torch.profiler with `with_stack=True`.",
    load: () => import("./modules/Modules"),
  },
  {
    id: "calls",
    title: "Call tree",
    about: "Who calls what, top-down and bottom-up, as a flame graph and a tree: Python, modules, operators, kernels",
    missing: ({ counts }) => (Number(counts.slices) > 0 ? null : "No calls were recorded."),
    load: () => import("./calls/Calls"),
  },
  {
    id: "efficiency",
    title: "Efficiency",
    about: "Roofline, tensor cores, occupancy, utilization of operations (MFU), copies, graphs",
    missing: missingDevices,
    load: () => import("./efficiency/Efficiency"),
  },
  {
    id: "memory",
    title: "Memory",
    about: "Memory in use over time, who holds the peak, allocations and how long they live",
    missing: ({ has }) =>
      has.memory
        ? null
        : "No memory was recorded: `stepscope record --memory` records allocations and frees; torch.profiler with `profile_memory=True`.",
    load: () => import("./memory/Memory"),
  },
  {
    id: "io",
    title: "I/O",
    about: "Files, what is read and written, bandwidth over time, DataLoader workers, waiting for data",
    missing: ({ has, steps }) =>
      has.io || steps.count > 0
        ? null
        : "No calls on files were recorded, and no steps that could wait for data: `stepscope record` records both, and traces of DFTracer open here.",
    load: () => import("./io/Io"),
  },
  {
    id: "distributed",
    title: "Distributed",
    about: "Steps rank beside rank, computation and communication, collectives, devices",
    missing: ({ ranks, has }) =>
      ranks.length > 1 || has.collectives
        ? null
        : "One process was recorded, and it communicated with no other: a job of several ranks is recorded by `stepscope record -- torchrun …`.",
    load: () => import("./distributed/Distributed"),
  },
  {
    id: "source",
    title: "Source",
    about: "Lines of the program that take the time, with their code; opens an editor",
    missing: ({ has }) =>
      has.source
        ? null
        : "No call stacks were recorded: `stepscope record` samples them, without `--no-stack-samples`, and records those of operators with `--stacks`; torch.profiler does `with_stack=True`.",
    load: () => import("./source/Source"),
  },
  {
    id: "compare",
    title: "Compare",
    about: "Two runs, or two ranks of one: steps, operators, kernels, modules, and timelines side by side",
    missing: ({ run }) =>
      (runs.value?.length ?? 0) > 1 || run.ranks.length > 1
        ? null
        : "There is one run, of one rank. Open the one to compare it with beside it: `stepscope view A B`.",
    load: () => import("./compare/Compare"),
  },
  {
    id: "tables",
    title: "All tables",
    about: "Every analysis as a table",
    missing: always,
    load: () => import("./tables/Tables"),
  },
  {
    id: "query",
    title: "Query",
    about: "SQL over the tables of the run: rows, plots, CSV and Parquet",
    missing: () =>
      about.value?.sql === false
        ? "Queries need a program that is not installed here: `pip install 'stepscope[sql]'`, then start `stepscope view` again."
        : null,
    load: () => import("./query/Query"),
  },
];

/** The page of that name. */
export const findPage = (id: string): PageInfo | undefined => PAGES.find((page) => page.id === id);
