// The row of a rank that draws the critical path of its steps: what is on it at each moment. A click on a piece leads to the
// slice that it is of.

import type { Envelope, Row } from "../../api/types";
import type { DataSource } from "../../canvas/data";
import type { Item, Items } from "../../canvas/item_loader";
import type { TimelineGroup } from "../../canvas/model";
import type { Span } from "../../canvas/view";
import { CLASSES, partLook } from "../../classes";
import type { Requests } from "../../components/timeline-shared/requests";
import { clipped } from "../../format/printable";
import { formatNs } from "../../format/units";

export const PATH = "Critical path";

/** Buckets of what is shown, at least: pieces that are shorter stand together. */
const BUCKETS = 1500;
/** Buckets are a power of this wide, so that a little zoom asks for what is known already. */
const WIDER = 4;
/** Rows of an answer: as many as three for each bucket of what is asked for, which is twice as long as what is shown. */
const ROWS = 10_000;
/** Steps whose paths are drawn. */
const STEPS = 10_000;
/** Characters of a name that say which slice is meant. */
const NAME = 200;

/** The groups with this row at the top of each rank that has a device which runs anything, and the rank of each row. */
export function withPathRows(
  groups: readonly TimelineGroup[],
  taken: number,
): { readonly groups: readonly TimelineGroup[]; readonly ranks: ReadonlyMap<number, number> } {
  const ranks = new Map<number, number>();
  const hasDevice = (group: TimelineGroup): boolean =>
    (group.kind === "device" && group.summary !== null) || group.groups.some(hasDevice);
  const withRow = (group: TimelineGroup): TimelineGroup => {
    if (group.kind !== "rank" || !hasDevice(group)) return group;
    const { rank } = group;
    const id = -1 - taken - ranks.size;
    ranks.set(id, rank);
    const row = { id, name: PATH, kind: "projected", depth: 0, slices: 0, unit: null, rank, track: null } as const;
    const track = { name: PATH, rank, kind: "track", is_open: true, summary: null, groups: [], rows: [row] } as const;
    return { ...group, groups: [track, ...group.groups] };
  };
  return { groups: groups.map(withRow), ranks };
}

/** Asks for what such rows show, and leaves all others to `source`. */
export function pathSource(source: DataSource, requests: Requests, ranks: ReadonlyMap<number, number>): DataSource {
  const steps = new Map<number, Promise<Envelope>>();
  return {
    ...source,
    fetchItems: async (row, window, signal) => {
      const rank = ranks.get(row);
      if (rank === undefined) return (await source.fetchItems?.(row, window, signal)) ?? { items: [], isAll: true };
      const ofRank = steps.get(rank) ?? requests.analysis("critical_path", stepsQuery(rank), signal);
      steps.set(rank, ofRank);
      const paths = stepPaths(await ofRank);
      const query = piecesQuery(rank, paths, window);
      return pathOf(paths, await requests.analysis("critical_path_pieces", query, signal));
    },
  };
}

const stepsQuery = (rank: number) =>
  [
    ["rank", rank],
    ["sort", "-start_ns"],
    ["limit", STEPS],
  ] as const;

/** The pieces of all of the time, or of a window around what is shown. */
export function piecesQuery(rank: number, paths: readonly StepPath[], window: Span | null) {
  const { start_ns, end_ns } = window ?? { start_ns: paths[0]?.start_ns ?? 0, end_ns: paths.at(-1)?.end_ns ?? 0 };
  const inside = [
    ["where", `end_ns:ge:${Math.floor(start_ns)}`],
    ["where", `start_ns:le:${Math.ceil(end_ns)}`],
  ] as const;
  const least_ns = (end_ns - start_ns) / 2 / BUCKETS;
  const bucket_ns = WIDER ** Math.max(Math.ceil(Math.log(least_ns) / Math.log(WIDER)), 0);
  const bucket = ["bucket_ms", (bucket_ns / 1e6).toFixed(6)] as const;
  return [["rank", rank], bucket, ...(window ? inside : []), ["sort", "-start_ns"], ["limit", ROWS]] as const;
}

/** The path of a step, from where no step before it is drawn any more. */
export interface StepPath extends Span {
  readonly step: string;
}

/**
 * Where the device runs behind the host, the path of a step begins before the path of the one before it ends, with work that
 * is on both: it is drawn once.
 */
export function stepPaths({ results }: Envelope): StepPath[] {
  let until = Number.NEGATIVE_INFINITY;
  return results.map((row) => {
    const start_ns = Math.max(Number(row.start_ns), until);
    const end_ns = Number(row.start_ns) + Number(row.length_ns);
    until = Math.max(until, end_ns);
    return { step: String(row.step), start_ns, end_ns };
  });
}

/** What is drawn: the pieces by start, each step's in the time of its path. */
export function pathOf(paths: readonly StepPath[], { results, page }: Envelope): Items {
  const byStep = new Map<string, Row[]>();
  for (const row of results) {
    const step = String(row.step);
    const known = byStep.get(step);
    if (known) known.push(row);
    else byStep.set(step, [row]);
  }
  const items = paths.flatMap((path) => {
    const own = byStep.get(path.step) ?? [];
    return own.flatMap((row) => {
      const start_ns = Math.max(Number(row.start_ns), path.start_ns);
      const end_ns = Math.min(Number(row.end_ns), path.end_ns);
      return start_ns < end_ns ? [itemOf(row, start_ns, end_ns)] : [];
    });
  });
  const isAll = page.matching <= results.length && results.every((row) => Number(row.pieces) === 1);
  return { items, isAll };
}

function itemOf(row: Row, start_ns: number, end_ns: number): Item {
  const { colour, words } = partLook(String(row.class));
  const nth = Math.max((CLASSES as readonly string[]).indexOf(colour), 0);
  const count = Number(row.pieces);
  const item = { start_ns, dur_ns: end_ns - start_ns, class: nth, ...(count > 1 && { count }) };
  const most = count > 1 ? `most of it ${words}, ${formatNs(Number(row.class_ns))}` : words;
  const link = linkOf(row);
  return link ? { ...item, name: `${most}: ${row.name}`, link } : { ...item, name: most };
}

/** The slice that a piece is of; null where nothing was recorded. */
export function linkOf(row: Row): NonNullable<Item["link"]> | null {
  if (row.name === null || row.slice_start_ns === null) return null;
  return { start_ns: Number(row.slice_start_ns), rank: Number(row.rank), name: clipped(String(row.name), NAME) };
}

/** Pieces of a range in a table. */
const LISTED = 1000;

/** Each piece that lies in a range at least in part, of a rank or of all. */
export function piecesOfRange(rank: number | null, { start_ns, end_ns }: Span) {
  return [
    ["rank", rank],
    ["where", `end_ns:gt:${Math.floor(start_ns)}`],
    ["where", `start_ns:lt:${Math.ceil(end_ns)}`],
    ["sort", "-start_ns"],
    ["limit", LISTED],
  ] as const;
}

/** The first piece after a moment, or the last before it, that is of a slice; null where there is none. */
export async function pieceBeside(
  requests: Requests,
  rank: number,
  from_ns: number,
  way: "after" | "before",
  signal: AbortSignal,
): Promise<{ readonly at_ns: number; readonly link: NonNullable<Item["link"]> } | null> {
  const isAfter = way === "after";
  const query = [
    ["rank", rank],
    ["where", `start_ns:${isAfter ? "gt" : "lt"}:${Math.round(from_ns)}`],
    ["where", "name:ne:"],
    ["sort", isAfter ? "-start_ns" : "start_ns"],
    ["limit", 1],
  ] as const;
  const [row] = (await requests.analysis("critical_path_pieces", query, signal)).results;
  const link = row && linkOf(row);
  return link ? { at_ns: Number(row.start_ns), link } : null;
}
