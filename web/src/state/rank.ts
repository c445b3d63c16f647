// The rank that was chosen for all pages, and whose events the timeline then shows of a run whose events do not fit into
// memory.

import { computed } from "@preact/signals";
import type { RunDetail } from "../api/types";
import { param } from "./route";
import { detail } from "./runs";
import { formatTimeline } from "./timeline_params";
import type { Changes } from "./url";

/** The number of a rank as an address has it; null for anything else, such as several ranks. */
export const rankNumber = (text: string | undefined): number | null =>
  text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;

/** The rank that was chosen, where it is one. */
export const chosenRank = computed(() => rankNumber(param("rank")));

type Showing = Pick<RunDetail, "shows_all">;

/** The rank whose events the timeline shows; null where it shows all events at once, or of all ranks what was condensed. */
export const rankShown = (run: Showing | null, rank: number | null): number | null =>
  run === null || run.shows_all ? null : rank;

/** Whether the timeline shows of all ranks what was condensed: the collectives. */
export const isCondensed = (run: Showing | null, rank: number | null): boolean =>
  run !== null && !run.shows_all && rank === null;

/** Of the run that is shown: the rank whose events its timeline shows. */
export const shownRank = computed(() => rankShown(detail.value, chosenRank.value));

/** Of the run that is shown: whether its timeline shows only collectives. */
export const showsCondensed = computed(() => isCondensed(detail.value, chosenRank.value));

/** What choosing a rank changes: the timeline of a rank has no slices of another one that could be selected. */
export function rankChanges(rank: string | null): Changes {
  const keepsSlice = detail.value?.shows_all !== false || param("at-rank") === rank;
  return keepsSlice ? { rank } : { rank, ...formatTimeline({ at: null }) };
}
