// What is shown, as it stands in the address. Things are named by rank, time and name, so that a link holds for another
// reading of the run.

import { type Mark, NOTE_LENGTH } from "../canvas/marks";
import type { Span } from "../canvas/view";
import { clipped } from "../format/printable";

/** Values of the address by name, as `web/src/state/url.ts` has them. */
export type Params = readonly (readonly [name: string, value: string])[];

/** A slice as a link names it. */
export interface SliceLink {
  readonly start_ns: number;
  readonly rank: number | null;
  readonly name: string | null;
}

/** What the timeline shows, apart from what the server has. */
export interface TimelineParams {
  readonly view: Span | null;
  readonly at: SliceLink | null;
  readonly range: Span | null;
  /** The rows that the range is of, by keys; none for all. */
  readonly rangeRows: readonly string[];
  readonly marks: readonly Mark[];
  readonly pins: readonly string[];
  readonly open: readonly string[];
  readonly shut: readonly string[];
  readonly search: string;
  /** What is typed to keep some tracks only. */
  readonly tracks: string;
}

/** Characters of a slice's name in an address: rank and time say which one it is, or nearly. */
const NAME_LENGTH = 200;

/** More marks, pins or groups than this are not taken from an address. */
const MANY = 1000;

/** `100-250` as a window; `null` for anything else. */
export function parseSpan(text: string | undefined): Span | null {
  const [, start, end] = /^(-?\d{1,16})-(-?\d{1,16})$/.exec(text ?? "") ?? [];
  const span = { start_ns: Number(start), end_ns: Number(end) };
  return Number.isSafeInteger(span.start_ns) && Number.isSafeInteger(span.end_ns) && span.end_ns >= span.start_ns
    ? span
    : null;
}

/** A window in whole ns. */
export const formatSpan = (span: Span): string => `${Math.round(span.start_ns)}-${Math.round(span.end_ns)}`;

/** `1200` or `1200:a note`. */
function parseMark(text: string): Mark | null {
  const [, time, note = ""] = /^(\d{1,16})(?::(.*))?$/s.exec(text) ?? [];
  return time === undefined ? null : { time_ns: Number(time), note: clipped(note, NOTE_LENGTH) };
}

const formatMark = ({ time_ns, note }: Mark): string =>
  note ? `${time_ns}:${clipped(note, NOTE_LENGTH)}` : `${time_ns}`;

/** What an address says. Whatever makes no sense in it is left out. */
export function parseTimeline(params: Params): TimelineParams {
  const all = (name: string) =>
    params
      .filter(([known]) => known === name)
      .map(([, value]) => value)
      .slice(0, MANY);
  const one = (name: string) => all(name)[0];
  const whole = (text: string | undefined) => (/^\d{1,16}$/.test(text ?? "") ? Number(text) : null);
  const start_ns = whole(one("at"));
  const at = start_ns === null ? null : { start_ns, rank: whole(one("at-rank")), name: one("at-name") ?? null };
  return {
    view: parseSpan(one("view")),
    at,
    range: parseSpan(one("range")),
    rangeRows: all("range-row"),
    marks: all("mark").flatMap((text) => parseMark(text) ?? []),
    pins: all("pin"),
    open: all("open"),
    shut: all("shut"),
    search: one("q") ?? "",
    tracks: one("tracks") ?? "",
  };
}

/** Values for an address; `null` and an empty list take a value away. */
export function formatTimeline(shown: Partial<TimelineParams>): Record<string, string | readonly string[] | null> {
  const changes: Record<string, string | readonly string[] | null> = {};
  if ("view" in shown) changes.view = shown.view ? formatSpan(shown.view) : null;
  if ("at" in shown) {
    changes.at = shown.at ? String(shown.at.start_ns) : null;
    changes["at-rank"] = shown.at && shown.at.rank !== null ? String(shown.at.rank) : null;
    changes["at-name"] = shown.at?.name ? clipped(shown.at.name, NAME_LENGTH) : null;
  }
  if ("range" in shown) {
    changes.range = shown.range ? formatSpan(shown.range) : null;
    // Rows are those of one range.
    changes["range-row"] = shown.rangeRows ?? null;
  }
  if (shown.marks) changes.mark = shown.marks.map(formatMark);
  if (shown.pins) changes.pin = shown.pins;
  if (shown.open) changes.open = shown.open;
  if (shown.shut) changes.shut = shown.shut;
  if ("search" in shown) changes.q = shown.search || null;
  if ("tracks" in shown) changes.tracks = shown.tracks || null;
  return changes;
}

/**
 * Whether Back should come here again: after a zoom by half or more, or a move by half a window. Smaller moves change
 * the address without a step for Back.
 */
export function isLargeMove(before: Span, after: Span): boolean {
  const length = before.end_ns - before.start_ns;
  const ratio = (after.end_ns - after.start_ns) / Math.max(length, 1);
  const move = Math.abs(after.start_ns + after.end_ns - before.start_ns - before.end_ns) / 2;
  return ratio > 1.5 || ratio < 1 / 1.5 || move > length / 2;
}
