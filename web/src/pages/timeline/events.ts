// The events of a range: of which rows they are, and in which order.

import { isKept } from "../../canvas/layout";
import type { Slice } from "../../canvas/model";
import type { Rows } from "../../components/timeline-shared/rows";

/** Events that are asked for. */
export const MOST_EVENTS = 1000;

/** Rows that one request is about at most: they stand in its address. */
const MOST_ROWS = 1500;

export const EVENT_ORDERS = ["start", "longest first", "name"] as const;
export type EventOrder = (typeof EVENT_ORDERS)[number];

/** The rows of slices and samples that a range is of: those that it was dragged over, else all that are shown or closed. */
export function eventRows(
  rows: Rows,
  dragged: readonly number[],
): { readonly ids: readonly number[]; readonly all: number } {
  const shown = rows.shown.value;
  const isMeant = dragged.length > 0 ? new Set(dragged) : null;
  const ids = rows.all
    .filter(({ key, group }) => (shown.rank === null || group.rank === shown.rank) && isKept(shown, key))
    .flatMap(({ group }) => group.rows)
    .filter(({ id, kind }) => (kind === "slices" || kind === "samples") && (!isMeant || isMeant.has(id)))
    .map(({ id }) => id);
  return { ids: ids.slice(0, MOST_ROWS), all: ids.length };
}

/** Events in an order; equal ones stay by start. */
export function ordered(events: readonly Slice[], order: EventOrder): readonly Slice[] {
  if (order === "start") return events;
  return [...events].sort((one, other) =>
    order === "name" ? (one.name < other.name ? -1 : one.name > other.name ? 1 : 0) : other.dur_ns - one.dur_ns,
  );
}
