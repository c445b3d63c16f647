// Which tiles draw a row: those of the level where they are known, else the nearest one above, stretched.

import type { Piece } from "./paint";
import { LEVEL_MAX, type Tile, tileSpan } from "./tile";
import { type Span, tilesOf } from "./view";

/** Where a tile is looked up. */
export type Known = (level: number, tile: number) => Tile | undefined;

/**
 * The pieces of a row for a window. Neighbours of the level make one run, in which an item that is in several tiles is
 * drawn once. What no tile is known of is left out.
 */
export function piecesOf(known: Known, view: Span, level: number): Piece[] {
  const { first, last } = tilesOf(view, level);
  const span = tileSpan(level);
  const pieces: Piece[] = [];
  let at = first;
  while (at <= last) {
    const run: Tile[] = [];
    while (at + run.length <= last) {
      const tile = known(level, at + run.length);
      if (!tile) break;
      run.push(tile);
    }
    const from_ns = at * span;
    const to_ns = (at + run.length) * span;
    run.forEach((tile, nth) => {
      pieces.push({ tile, from_ns, to_ns, begin_ns: (at + nth) * span, isFirst: nth === 0 });
    });
    at += run.length;
    if (at > last) break;
    const above = tileAbove(known, level, at);
    const end = above ? Math.min(above.end, last + 1) : at + 1;
    // Until the next tile that is known itself.
    let next = at + 1;
    while (next < end && !known(level, next)) next++;
    if (above) {
      pieces.push({ tile: above.tile, from_ns: at * span, to_ns: next * span, begin_ns: at * span, isFirst: true });
    }
    at = next;
  }
  return pieces;
}

/** The nearest known tile above tile `at`, and the first tile of `level` that it does not hold. */
function tileAbove(known: Known, level: number, at: number): { tile: Tile; end: number } | undefined {
  let parent = at;
  for (let up = level + 1; up <= LEVEL_MAX; up++) {
    parent = Math.floor(parent / 2);
    const tile = known(up, parent);
    if (tile) return { tile, end: (parent + 1) * 2 ** (up - level) };
    if (parent === 0 && up > level + 24) return undefined;
  }
  return undefined;
}
