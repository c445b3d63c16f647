// Links name things by rank, time and name, never by a number that another reading of the run would give anew.

import type { Num } from "../api/types";
import { hrefOf } from "./place";

interface Moment {
  readonly rank?: Num | null;
  readonly start_ns: Num;
  readonly name?: string | null;
}

/** The timeline at one slice, or at a moment. */
export function timelineAt({ rank, start_ns, name }: Moment): string {
  const at = rank === null || rank === undefined ? null : String(rank);
  return hrefOf("timeline", { at: String(start_ns), "at-rank": at, "at-name": name ?? null });
}

/** The timeline with everything found that has this name. */
export const timelineSearch = (name: string): string => hrefOf("timeline", { q: name });

/** A line of the job's source. */
export const sourceLine = (file: string, line: Num | null): string =>
  hrefOf("source", { file, line: line === null ? null : String(line) });

const PAGES_OF: ReadonlyMap<string, string> = new Map(
  Object.entries({
    operators: ["operators"],
    kernels: ["kernels"],
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
