// Arrows of a slice: what launched it, what it launched, forward to backward.

import type { Slice, SliceDetails } from "./model";
import type { Arrow } from "./scene";

export type FlowWay = "forwards" | "backwards";

/** The arrows to and from a slice, each once. */
export function arrowsOf(details: SliceDetails | null): Arrow[] {
  if (!details) return [];
  const { slice } = details;
  const arrows: Arrow[] = [];
  const put = (from: Slice, to: Slice) => {
    if (!arrows.some((known) => known.from.id === from.id && known.to.id === to.id)) arrows.push({ from, to });
  };
  if (details.launch) put(details.launch, slice);
  for (const flow of details.flows) flow.direction === "out" ? put(slice, flow.slice) : put(flow.slice, slice);
  const known = new Set(arrows.map(({ to }) => to.id));
  for (const launched of details.launched) if (!known.has(launched.id)) arrows.push({ from: slice, to: launched });
  return arrows;
}

/** Where the first arrow leads to, or comes from; `null` without one. */
export function flowEnd(details: SliceDetails, way: FlowWay): Slice | null {
  const { id } = details.slice;
  const arrows = arrowsOf(details);
  const arrow = arrows.find(({ from, to }) => (way === "forwards" ? from.id === id : to.id === id));
  if (!arrow) return null;
  return way === "forwards" ? arrow.to : arrow.from;
}
