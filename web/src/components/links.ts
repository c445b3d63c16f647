// Links name things by rank, time and name, never by a number that another reading of the run would give anew.

import type { Advice, Num } from "../api/types";
import { around, type Span } from "../canvas/view";
import { clipped } from "../format/printable";
import { hrefOf, route } from "../state/route";
import { detail } from "../state/runs";
import { formatSpan } from "../state/timeline_params";
import { type Condition, formatCondition } from "./table/choices";

/** Where a row, or what it names, leads: to the timeline, to source, to another page. */
export interface RowLink {
  readonly label: string;
  readonly href: string;
}

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

/**
 * The timeline at a stretch of time, which fills half of it: a short one would be a speck in all of the time. It is the
 * range there; among the events of several ranks it is a place of its rank, since a range has the sums of all.
 */
export function timelineOver({ rank, start_ns, length_ns }: Stretch): string {
  if (Number(length_ns) <= 0) return timelineAt({ rank, start_ns });
  const span = { start_ns: Number(start_ns), end_ns: Number(start_ns) + Number(length_ns) };
  const isOneOfMany = rank !== null && rank !== undefined && (detail.value?.ranks.length ?? 0) > 1;
  if (isOneOfMany && detail.value?.shows_all)
    return hrefOf("timeline", { view: viewOf(span), at: String(start_ns), "at-rank": String(rank) });
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

/** Where the file and the line are that `file(line): function` names; null for what no file has. */
export function placeOf(frame: string): { readonly file: string; readonly line: number } | null {
  const [, file, line] = /^(.+?)\((\d{1,9})\): /.exec(frame) ?? [];
  return file && line && !/^<.*>$/.test(file) ? { file, line: Number(line) } : null;
}

/** The path of the first of these modules, each of which is called by the one behind it. */
export const pathOfModules = (innermostFirst: readonly string[]): string => innermostFirst.toReversed().join(".");

/** The modules from this path on. */
export const modulesBelow = (path: string): string => hrefOf("modules", { root: path });

/** What modules call on a page that groups by module: that of those with this path, or all within it. */
export const calledBy = (page: "operators" | "kernels", path: string, isWithin = false): string => {
  const condition: Condition = isWithin
    ? { column: "module", operator: "has", value: `${path}.` }
    : { column: "module", operator: "eq", value: path };
  return hrefOf(page, { group: "module", where: formatCondition(condition) });
};

/** Pages that have what is of a kind, and what they are called. */
const PAGE_OF_KIND: Readonly<Record<string, readonly [page: string, title: string]>> = {
  op: ["operators", "Operators"],
  kernel: ["kernels", "Kernels"],
  copy: ["kernels", "Kernels"],
  fill: ["kernels", "Kernels"],
  module: ["modules", "Modules"],
};

/** The row of what has this name, on the page that has its kind; null for a kind that no page has. */
export function pageOfName(kind: string, name: string): string | null {
  const [page] = PAGE_OF_KIND[kind] ?? [];
  return page ? hrefOf(page, { where: formatCondition(nameCondition("name", linkedName(name))) }) : null;
}

/**
 * Everywhere that a name leads from the page that is shown, by what it is of; kinds are those of the tree of calls. The first is
 * where a chart leads.
 */
export function linksOfName(kind: string, name: string): RowLink[] {
  const here = route.value.page;
  const isKernel = PAGE_OF_KIND[kind]?.[0] === "kernels";
  const place = kind === "python" ? placeOf(name) : null;
  const links: (RowLink | null)[] = [
    place && { label: "The code", href: sourceLine(place.file, place.line) },
    linkTo(here, kind, name),
    kind === "module" && here !== "calls"
      ? { label: "What it calls, down to kernels", href: hrefOf("calls", { find: searchText(name), layers: "no" }) }
      : null,
    kind !== "module" && here !== "calls"
      ? { label: isKernel ? "Who launches it" : "Who calls it", href: callersOf(name) }
      : null,
    {
      label: isKernel || here === "calls" ? "On the timeline" : "Its calls on the timeline",
      href: timelineSearch(name),
    },
  ];
  return links.filter((link): link is RowLink => link !== null);
}

/** Its row on the page of its kind, unless that is the one that is shown. */
function linkTo(here: string, kind: string, name: string): RowLink | null {
  const [page, title] = PAGE_OF_KIND[kind] ?? [];
  const href = pageOfName(kind, name);
  return href !== null && page !== here ? { label: `In ${title}`, href } : null;
}

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
