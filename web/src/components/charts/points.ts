// Rows as the points of a chart of one number against another. Numbers become doubles here, for pixels only.

import type { Row } from "../../api/types";

/** Points from left to right. */
export interface Points {
  readonly xs: readonly number[];
  readonly ys: readonly number[];
  /** The rows that they are of. */
  readonly rows: readonly Row[];
}

/** The points of `rows` that have both numbers. */
export function pointsOf(rows: readonly Row[], x: string, y: string): Points {
  const isKnown = (row: Row) => row[x] !== null && row[y] !== null;
  const points = rows.filter(isKnown).map((row) => ({ x: Number(row[x]), y: Number(row[y]), row }));
  const drawn = points.filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y));
  drawn.sort((a, b) => a.x - b.x);
  return { xs: drawn.map(({ x }) => x), ys: drawn.map(({ y }) => y), rows: drawn.map(({ row }) => row) };
}

/** The place of the point that is closest on the screen, given the pixels for one of x and of y; -1 where there is none. */
export function closest({ xs, ys }: Points, at: { x: number; y: number }, pixels: { x: number; y: number }): number {
  let [found, least] = [-1, Number.POSITIVE_INFINITY];
  for (let index = 0; index < xs.length; index++) {
    const distance = Math.hypot(((xs[index] ?? 0) - at.x) * pixels.x, ((ys[index] ?? 0) - at.y) * pixels.y);
    if (distance < least) [found, least] = [index, distance];
  }
  return found;
}

/** A range with some room at both ends, but none below 0 where nothing is. */
export function withRoom(least: number, most: number): [number, number] {
  const room = (most - least) * 0.04 || Math.abs(most) * 0.1 || 1;
  const from = least - room;
  return [least >= 0 && from < 0 ? 0 : from, most + room];
}
