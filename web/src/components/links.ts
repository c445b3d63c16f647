// Links name things by rank, time and name, never by a number that another reading of the run would give anew.

import type { Advice, Num } from "../api/types";
import { around, type Span } from "../canvas/view";
import { clipped } from "../format/printable";
import { hrefOf } from "../state/route";
import { detail } from "../state/runs";
import { formatSpan } from "../state/timeline_params";
import type { Condition } from "./table/choices";

interface Moment {
  readonly rank?: Num | null;
  readonly start_ns: Num;
  readonly name?: string | null;
}

/** Characters of a name in a link: rank and time say which slice is meant, or few other names begin so. */
const SLICE_NAME = 200;
const LONG_NAME = 1_000;

/** A name as a link has it. */
export const linkedName = (name: string): string => clipped(name, LONG_NAME);

/** What a search finds a name by. */
export const searchText = (name: string): string => (name.length > LONG_NAME ? linkedName(name).slice(0, -1) : name);

/** The condition that a row has this name, or one that a link has clipped. */
export function nameCondition(column: string, name: string): Condition {
  if (name.length < LONG_NAME) return { column, operator: "eq", value: name };
  return { column, operator: "has", value: linkedName(name).slice(0, LONG_NAME - 2) };
}

/** The timeline at one slice, or at a moment: that of its rank, where it does not show all events at once. */
export function timelineAt({ rank, start_ns, name }: Moment): string {
  const at = rank === null || rank === undefined ? null : String(rank);
  return hrefOf("timeline", {
    ...ofRank(rank),
    at: String(start_ns),
    "at-rank": at,
    "at-name": name ? clipped(name, SLICE_NAME) : null,
  });
}

interface Stretch {
  readonly rank?: Num | null;
  readonly start_ns: Num;
  readonly length_ns: Num;
}

/** Steps that are taken for the run's where it has none. */
const PARTS = 20;

/** The timeline at a stretch of time, which is its range and fills half of it: a short one would be a speck in all of the time. */
export function timelineOver({ rank, start_ns, length_ns }: Stretch): string {
  if (Number(length_ns) <= 0) return timelineAt({ rank, start_ns });
  const span = { start_ns: Number(start_ns), end_ns: Number(start_ns) + Number(length_ns) };
  return hrefOf("timeline", { ...ofRank(rank), view: viewOf(span), range: formatSpan(span) });
}

/** The timeline at what advice is about: at its slice, or where that has no name, from there on for as long as a step takes. */
export function timelineOfAdvice({
  rank,
  start_ns,
  slice,
}: Pick<Advice, "rank" | "start_ns" | "slice">): string | null {
  if (start_ns === null) return null;
  if (slice !== null) return timelineAt({ rank, start_ns, name: slice });
  const { span = null, steps } = detail.value ?? {};
  if (!span) return timelineAt({ rank, start_ns });
  const length = (Number(span.end_ns) - Number(span.start_ns)) / Math.max(steps?.count ?? 0, PARTS);
  const view = viewOf({ start_ns: Number(start_ns), end_ns: Number(start_ns) + length });
  return hrefOf("timeline", { ...ofRank(rank), view });
}

const viewOf = (span: Span): string => formatSpan(around(span, 0.5));

/** What shows a rank, where the timeline does not show all events at once. */
const ofRank = (rank: Num | null | undefined) =>
  rank !== null && rank !== undefined && detail.value?.shows_all === false ? { rank: String(rank) } : {};

/** The timeline with everything found that has this name. */
export const timelineSearch = (name: string): string => hrefOf("timeline", { q: searchText(name) });

/** The tree of calls with what has this name, and below it those who call it. */
export const callersOf = (name: string): string => hrefOf("calls", { direction: "callers", find: searchText(name) });

/** A line of the job's source. */
export const sourceLine = (file: string, line: Num | null): string =>
  hrefOf("source", { file, line: line === null ? null : String(line) });

const PAGES_OF: ReadonlyMap<string, string> = new Map(
  Object.entries({
    operators: ["operators"],
    idle: [
      "idle_causes",
      "idle_gaps",
      "critical_path",
      "critical_path_slices",
      "critical_path_pieces",
      "synchronizations",
      "queue_length",
    ],
    efficiency: ["roofline", "device_peaks", "gpu_utilization", "gpu_utilization_curve", "copies", "graphs"],
    calls: ["call_tree"],
    kernels: ["kernels", "launch_statistics"],
    modules: ["modules"],
    source: ["source_lines"],
    distributed: ["collectives"],
    memory: ["memory_summary", "memory_curve", "memory_peak", "memory_statistics", "memory_events"],
    io: ["io_files", "io_curve"],
  }).flatMap(([page, analyses]) => analyses.map((analysis) => [analysis, page] as const)),
);

/** The page that shows the rows of an analysis. */
export function evidencePage(analysis: string): string {
  const page = PAGES_OF.get(analysis);
  return page ? hrefOf(page) : hrefOf("tables", { analysis });
}
