// The parts of the address that the timeline shows, each as a signal that changes only when its part says something else.

import { computed, type ReadonlySignal } from "@preact/signals";
import { chosenRank } from "../../state/rank";
import { route } from "../../state/route";
import { parseTimeline, type TimelineParams } from "../../state/timeline_params";

const all = computed(() => parseTimeline(route.value.params));

function part<K extends keyof TimelineParams>(name: K): ReadonlySignal<TimelineParams[K]> {
  const text = computed(() => JSON.stringify(all.value[name]));
  return computed(() => JSON.parse(text.value) as TimelineParams[K]);
}

export const address = {
  /** What is opened, closed and pinned. */
  opened: all,
  at: part("at"),
  range: part("range"),
  rangeRows: part("rangeRows"),
  marks: part("marks"),
  search: part("search"),
  tracks: part("tracks"),
  rank: chosenRank,
} as const;
