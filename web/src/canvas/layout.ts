// Rows from top to bottom as they are shown: groups that are open or closed, and pinned tracks above all others.

import type { TimelineGroup, TimelineRow } from "./model";
import { counterKey, type Kept } from "./track_filter";

/** Heights in CSS pixels. A track has room for a button of 24 pixels: it stands on its first row, or on two. */
export const HEIGHTS = { header: 24, track: 24, slices: 18, counter: 44 } as const;

/** One line of the timeline. */
export interface Line {
  /** Unique on the screen; a pinned line has another key than the line that it repeats. */
  readonly key: string;
  /** What is opened, closed and pinned with this line; it stays the same when the run is read again. */
  readonly group: string;
  readonly y: number;
  readonly height: number;
  /** How far its label is indented. */
  readonly indent: number;
  /** What it is called; empty for the further rows of a track. */
  readonly label: string;
  /** Under which it stands, for the label's description. */
  readonly within: string;
  readonly isHeader: boolean;
  /** Whether it opens and closes something; `null` when there is nothing to open. */
  readonly isOpen: boolean | null;
  readonly isPinned: boolean;
  /** What is drawn: `null` for the header of an open group. */
  readonly row: number | null;
  readonly kind: TimelineRow["kind"];
  readonly unit: string | null;
  readonly rank: number;
  /** The row of the samples that frames are of. */
  readonly samples?: number;
}

/** All lines, and where they are. */
export interface Layout {
  /** Lines that do not scroll, from 0 on. */
  readonly pinned: readonly Line[];
  readonly pinnedHeight: number;
  /** Lines that scroll, from 0 on. */
  readonly lines: readonly Line[];
  readonly height: number;
}

/** What is shown of the groups. */
export interface Shown {
  /** Groups that are not as the server has them: open where it has them closed, or closed. */
  readonly open: ReadonlySet<string>;
  readonly shut: ReadonlySet<string>;
  readonly pins: ReadonlySet<string>;
  /** Only this rank. */
  readonly rank: number | null;
  /** Only what a filter of tracks keeps; pinned tracks stay in any case. */
  readonly kept: Kept | null;
}

/** A group with its key. */
export interface KeyedGroup {
  readonly key: string;
  readonly path: string;
  readonly group: TimelineGroup;
  readonly groups: readonly KeyedGroup[];
}

/** Gives every group a key made of names: of two that have one name at one place, the second has a number behind it. */
export function keyed(groups: readonly TimelineGroup[], above = "", path = ""): KeyedGroup[] {
  const seen = new Map<string, number>();
  return groups.map((group) => {
    const nth = (seen.get(group.name) ?? 0) + 1;
    seen.set(group.name, nth);
    const name = encodeURIComponent(group.name) + (nth > 1 ? `#${nth}` : "");
    const key = above ? `${above}/${name}` : name;
    const here = path ? `${path} ▸ ${group.name}` : group.name;
    return { key, path: here, group, groups: keyed(group.groups, key, here) };
  });
}

/** The lines of `groups`. */
export function layoutOf(groups: readonly KeyedGroup[], shown: Shown): Layout {
  const lines: Line[] = [];
  const pinned: Line[] = [];
  let height = 0;
  let pinnedHeight = 0;
  const put = (line: Omit<Line, "y" | "isPinned">) => {
    lines.push({ ...line, y: height, isPinned: false });
    height += line.height;
  };
  const pin = (line: Omit<Line, "y" | "isPinned">) => {
    pinned.push({ ...line, key: `pin ${line.key}`, indent: 0, y: pinnedHeight, isPinned: true });
    pinnedHeight += line.height;
  };
  const walk = (each: KeyedGroup, indent: number, isShown: boolean) => {
    if (shown.rank !== null && each.group.rank !== shown.rank) return;
    const own = linesOf(each, indent, isOpenIn(shown, each));
    if (isShown && isKept(shown, each.key)) for (const line of own) put(line);
    if (shown.pins.has(each.key)) for (const line of own) pin({ ...line, label: line.label && pinnedName(each) });
    const rows = each.group.rows.filter((row) => row.kind === "counter");
    for (const row of rows) {
      const line = counterLine(each, row, indent + 1);
      if (isShown && isOpenIn(shown, each) && isKept(shown, line.group)) put(line);
      if (shown.pins.has(line.group)) pin({ ...line, label: `${line.label} · ${pinnedName(each)}` });
    }
    for (const inner of each.groups) walk(inner, indent + 1, isShown && isOpenIn(shown, each));
  };
  for (const group of groups) walk(group, 0, true);
  return { pinned, pinnedHeight, lines, height };
}

type Unplaced = Omit<Line, "y" | "isPinned">;

/** The lines of a group itself: a header, or the rows of a track. Counters have lines of their own. */
function linesOf(each: KeyedGroup, indent: number, isOpen: boolean): Unplaced[] {
  const { key, group, path } = each;
  const base = { group: key, indent, within: path, rank: group.rank, unit: null };
  if (group.kind !== "track") {
    const row = isOpen ? null : group.summary;
    // A rank has a strip of its own; what other groups are closed to is an average of their tracks.
    const kind = group.rows.find(({ id }) => id === row)?.kind ?? "density";
    const line = { ...base, key, label: group.name, isHeader: true, isOpen, row, kind };
    return [{ ...line, height: HEIGHTS.header }];
  }
  const rows = group.rows.filter(({ kind }) => kind !== "counter" && kind !== "density");
  const [first] = rows;
  if (!first) return [];
  const canOpen = rows.length > 1;
  if (!isOpen) {
    const row = canOpen && group.summary !== null ? group.summary : first.id;
    // Of samples and their frames the samples stay.
    const isDensity = canOpen && group.summary !== null && first.kind !== "samples";
    const kind = isDensity ? ("density" as const) : first.kind;
    const line = { ...base, key, label: group.name, isHeader: false, isOpen: canOpen ? false : null, row, kind };
    return [{ ...line, height: HEIGHTS.track }];
  }
  return rows.map((row, nth) => ({
    ...base,
    key: nth === 0 ? key : `${key} ${nth}`,
    label: nth === 0 ? group.name : "",
    isHeader: false,
    isOpen: nth === 0 && canOpen ? true : null,
    row: row.id,
    kind: row.kind,
    height: canOpen ? HEIGHTS.slices : HEIGHTS.track,
    ...(row.kind === "sampled_frames" && { samples: first.id }),
  }));
}

function counterLine({ key, path, group }: KeyedGroup, row: TimelineRow, indent: number): Unplaced {
  const own = counterKey(key, row.name);
  const words = { ...counterWords(row), within: path, rank: group.rank };
  const base = { key: own, group: own, indent, isHeader: false, isOpen: null, row: row.id, kind: row.kind };
  return { ...base, ...words, height: HEIGHTS.counter };
}

/** What a counter is called, and its unit: recorders write `power (mW)`. What is made of bits is no number of them. */
function counterWords({ name, unit }: TimelineRow): { label: string; unit: string | null } {
  const [, label, behind] = /^(.+) \(([^)\s]+)\)$/.exec(name) ?? [];
  return label === undefined || behind === undefined || behind === "bits"
    ? { label: name, unit }
    : { label, unit: behind };
}

/** A track's name with what it is a track of: pinned, it stands alone. */
function pinnedName({ path }: KeyedGroup): string {
  const parts = path.split(" ▸ ");
  return parts.length > 1 ? `${parts.at(-1)} · ${parts.slice(0, -1).join(" · ")}` : path;
}

/** The line at a height, by halving. */
export function lineAt(lines: readonly Line[], y: number): Line | undefined {
  const line = lines[firstBelow(lines, y)];
  return line && y >= line.y ? line : undefined;
}

/** The lines of which any part lies between two heights. */
export function linesBetween(lines: readonly Line[], top: number, bottom: number): Line[] {
  const found: Line[] = [];
  for (let at = firstBelow(lines, top); at < lines.length; at++) {
    const line = lines[at];
    if (!line || line.y >= bottom) break;
    found.push(line);
  }
  return found;
}

/** The first line that ends below `y`. */
function firstBelow(lines: readonly Line[], y: number): number {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const line = lines[middle];
    if (line && line.y + line.height > y) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The groups that must be open for a row to be seen, outermost first; `null` when there is no such row. */
export function groupsAround(groups: readonly KeyedGroup[], row: number): KeyedGroup[] | null {
  for (const each of groups) {
    if (each.group.rows.some(({ id }) => id === row)) return [each];
    const inner = groupsAround(each.groups, row);
    if (inner) return [each, ...inner];
  }
  return null;
}

/** Whether a group is open before anyone opens or closes it: as the server has it, the only rank that is shown, and for a filter. */
const opensAtFirst = (shown: Shown, { key, group }: KeyedGroup): boolean =>
  group.is_open || (group.kind === "rank" && group.rank === shown.rank) || shown.kept?.opened.has(key) === true;

/** Whether a filter of tracks leaves a group, a track or a counter where it is. */
export const isKept = ({ kept }: Shown, key: string): boolean => kept === null || kept.keys.has(key);

/** Whether a group is open. */
export const isOpenIn = (shown: Shown, each: KeyedGroup): boolean =>
  shown.open.has(each.key) || (opensAtFirst(shown, each) && !shown.shut.has(each.key));

/** What is shown with a group opened or closed. */
export function withGroup(shown: Shown, each: KeyedGroup, isOpen: boolean): Shown {
  const { key } = each;
  const open = new Set(shown.open);
  const shut = new Set(shown.shut);
  open.delete(key);
  shut.delete(key);
  if (isOpen !== opensAtFirst(shown, each)) (isOpen ? open : shut).add(key);
  return { ...shown, open, shut };
}

/** Every group, outermost first. */
export function allGroups(groups: readonly KeyedGroup[]): KeyedGroup[] {
  return groups.flatMap((each) => [each, ...allGroups(each.groups)]);
}
