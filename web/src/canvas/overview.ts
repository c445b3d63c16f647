// How busy a run is over all of its time, for the minimap: the averages that stand for closed groups.

import { allGroups, type KeyedGroup } from "./layout";
import { decodeTiles, LEVEL_MAX, TILE_BINS, tileSpan } from "./tile";
import type { FetchTiles, TileRequest } from "./tile_loader";

/** No more rows than this are looked at: the minimap is for a first impression. */
const ROWS_MAX = 64;
/** Tiles for all of the time. */
const TILES = 2;

/** What to ask for: the averages of groups, in at most two tiles each. Null where there are none. */
export function overviewRequest(groups: readonly KeyedGroup[], end_ns: number): TileRequest | null {
  // A rank's row is no average; its devices and threads have one each.
  const rows = allGroups(groups).flatMap(({ group }) => (group.kind === "rank" ? [] : (group.summary ?? [])));
  if (rows.length === 0) return null;
  let level = 0;
  while (level < LEVEL_MAX && tileSpan(level) * TILES < end_ns) level++;
  return { rows: rows.slice(0, ROWS_MAX), level, first: 0, count: Math.max(Math.ceil(end_ns / tileSpan(level)), 1) };
}

/** For each of equal parts of the time from 0 to `end_ns`, how busy the busiest row is, 0 to 1. */
export function busyOf(answer: ArrayBuffer, level: number, end_ns: number): number[] {
  const bin_ns = tileSpan(level) / TILE_BINS;
  const busy = new Array<number>(Math.max(Math.ceil(end_ns / bin_ns), 1)).fill(0);
  for (const tile of decodeTiles(answer)) {
    for (let at = 0; at < tile.length; at++) {
      const bin = Math.floor((tile.start_ns[at] ?? 0) / bin_ns);
      const share = Math.min((tile.busy_ns[at] ?? 0) / bin_ns, 1);
      if (bin < busy.length) busy[bin] = Math.max(busy[bin] ?? 0, share);
    }
  }
  return busy;
}

/** Asks, and gives the answer; nothing where there is nothing to ask. */
export async function loadOverview(
  fetchTiles: FetchTiles,
  groups: readonly KeyedGroup[],
  end_ns: number,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const request = overviewRequest(groups, end_ns);
  return request ? busyOf(await fetchTiles(request, signal), request.level, end_ns) : [];
}
