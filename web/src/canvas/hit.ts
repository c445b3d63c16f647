// What is at a place of a row.

import type { Piece } from "./paint";
import { FLAG_SEVERAL, FLAG_UNFINISHED, firstEndingAfter, NO_SLICE } from "./tile";
import type { Scale } from "./view";

/** How near a pointer has to come, in CSS pixels. */
const REACH_PX = 3;

/** An item of a row. */
export interface Hit {
  readonly row: number;
  readonly name: string;
  readonly class: number;
  readonly start_ns: number;
  readonly dur_ns: number;
  readonly busy_ns: number;
  /** The slice behind it, or the longest of several; `null` where none stands behind it. */
  readonly slice: number | null;
  /** How many slices it stands for. */
  readonly count: number;
  readonly isSeveral: boolean;
  readonly isUnfinished: boolean;
}

/** The item of `pieces` at `x`, or else the nearest within reach. */
export function hitIn(row: number, pieces: readonly Piece[], scale: Scale, x: number): Hit | null {
  const time = scale.time(x);
  const reach = REACH_PX * scale.ns_per_px;
  let best: { piece: Piece; at: number } | null = null;
  let nearest = Number.POSITIVE_INFINITY;
  for (const piece of pieces) {
    const { tile } = piece;
    for (let at = firstEndingAfter(tile, time - reach - 1); at < tile.length; at++) {
      const start = tile.start_ns[at] ?? 0;
      if (start > time + reach) break;
      const end = start + (tile.dur_ns[at] ?? 0);
      // A stretched tile also tells of what other tiles tell better.
      if (end < piece.from_ns || start >= piece.to_ns) continue;
      const distance = Math.max(start - time, time - end, 0);
      if (distance <= reach && distance < nearest) {
        nearest = distance;
        best = { piece, at };
      }
    }
  }
  if (!best) return null;
  const { piece, at } = best;
  const { tile } = piece;
  const flags = tile.flags[at] ?? 0;
  const slice = tile.slice[at] ?? NO_SLICE;
  return {
    row,
    name: tile.names.text(tile.name[at] ?? 0),
    class: tile.class[at] ?? 0,
    start_ns: tile.start_ns[at] ?? 0,
    dur_ns: tile.dur_ns[at] ?? 0,
    busy_ns: tile.busy_ns[at] ?? 0,
    slice: slice === NO_SLICE ? null : slice,
    count: tile.count[at] ?? 0,
    isSeveral: (flags & FLAG_SEVERAL) !== 0,
    isUnfinished: (flags & FLAG_UNFINISHED) !== 0,
  };
}
