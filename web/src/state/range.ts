// The stretch of time that was chosen on a chart of the page: as on the timeline it stands in the address as `range`,
// beside the window that every page is of.

import { computed } from "@preact/signals";
import type { Query } from "../api/paths";
import type { Span } from "../canvas/view";
import { param, selection, setParams } from "./route";
import { formatSpan, parseSpan } from "./timeline_params";

/** What was chosen; null for everything. */
export const range = computed<Span | null>(() => {
  const span = parseSpan(param("range"));
  return span && span.start_ns >= 0 && span.end_ns > span.start_ns ? span : null;
});

/** Chooses another, or everything. */
export const chooseRange = (span: Span | null): void => setParams({ range: span ? formatSpan(span) : null });

/** The part of the run that lies in the range, as parameters of a request. */
export const rangeSelection = computed<Query>(() => {
  const span = range.value;
  if (!span) return selection.value;
  const others = selection.value.filter(([name]) => name !== "start_ns" && name !== "end_ns");
  return [...others, ["start_ns", span.start_ns], ["end_ns", span.end_ns]];
});

/** `part` with another rank. */
export const withRank = (part: Query, rank: string | number | bigint): Query => [
  ...part.filter(([name]) => name !== "rank"),
  ["rank", rank],
];
