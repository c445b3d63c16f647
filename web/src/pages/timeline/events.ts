// The events of a range: of which rows they are, how they are asked for, and in which order.

import { isKept } from "../../canvas/layout";
import type { Slice } from "../../canvas/model";
import type { Span } from "../../canvas/view";
import type { Rows } from "../../components/timeline-shared/rows";

/** Events of one answer: what the server gives at most. */
export const EVENTS_PER_ANSWER = 10_000;

/** Events that are kept at most. */
export const MOST_EVENTS = 200_000;

/** Rows that one request is about at most: they stand in its address. */
const ROWS_PER_REQUEST = 1500;

export const EVENT_ORDERS = ["start", "longest first", "name"] as const;
export type EventOrder = (typeof EVENT_ORDERS)[number];

/** The rows of slices and samples that a range is of: those that it was dragged over, else all that are shown or closed. */
export function eventRows(rows: Rows, dragged: readonly number[]): readonly number[] {
  const shown = rows.shown.value;
  const isMeant = dragged.length > 0 ? new Set(dragged) : null;
  return rows.all
    .filter(({ key, group }) => (shown.rank === null || group.rank === shown.rank) && isKept(shown, key))
    .flatMap(({ group }) => group.rows)
    .filter(({ id, kind }) => (kind === "slices" || kind === "samples") && (!isMeant || isMeant.has(id)))
    .map(({ id }) => id);
}

/** Asks for what rows show in a window, by start: `Requests.list`. */
type List = (rows: readonly number[], window: Span, limit: number) => Promise<readonly Slice[]>;

/** Events by start, from the first on. */
export interface Events {
  readonly events: readonly Slice[];
  /** Whether there are no others. */
  readonly isAll: boolean;
}

/** The events that are known with those that follow them: as many as one answer has. */
export async function withNext(
  { events: known }: Events,
  list: List,
  rows: readonly number[],
  range: Span,
  limit = EVENTS_PER_ANSWER,
): Promise<Events> {
  const window = { start_ns: known.at(-1)?.start_ns ?? range.start_ns, end_ns: range.end_ns };
  const answers = await Promise.all(partsOf(rows, ROWS_PER_REQUEST).map((part) => list(part, window, limit)));
  // The last ones that are known come again, and those that last until then.
  const seen = new Set(known.map(({ id }) => id));
  const next = answers.flat().sort((one, other) => one.start_ns - other.start_ns || one.id - other.id);
  const isAll = next.length <= limit && answers.every((answer) => answer.length < limit);
  return { events: [...known, ...next.slice(0, limit).filter(({ id }) => !seen.has(id))], isAll };
}

function partsOf<T>(all: readonly T[], length: number): T[][] {
  const count = Math.ceil(all.length / length);
  return Array.from({ length: count }, (_, nth) => all.slice(nth * length, (nth + 1) * length));
}

/** Events in an order; equal ones stay by start. */
export function ordered(events: readonly Slice[], order: EventOrder): readonly Slice[] {
  if (order === "start") return events;
  return [...events].sort((one, other) =>
    order === "name" ? (one.name < other.name ? -1 : one.name > other.name ? 1 : 0) : other.dur_ns - one.dur_ns,
  );
}
