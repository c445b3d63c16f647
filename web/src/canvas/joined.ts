// The parts of a collective by what they are drawn on: looked up in every frame, of thousands of ranks.

import type { PartOfRank, Slice } from "./model";

export interface Joined {
  /** By the row of what carries it out. */
  readonly ofRow: ReadonlyMap<number | null, PartOfRank>;
  /** By rank, for ranks that are a row each. */
  readonly ofRank: ReadonlyMap<number, PartOfRank>;
  /** What asks for it, by its row. */
  readonly askedOnRow: ReadonlyMap<number | null, Slice>;
}

export const joinedOf = (parts: readonly PartOfRank[]): Joined => ({
  ofRow: new Map(parts.map((part) => [part.slice.row, part])),
  ofRank: new Map(parts.map((part) => [part.rank, part])),
  askedOnRow: new Map(parts.flatMap(({ asked_by }) => (asked_by ? [[asked_by.row, asked_by] as const] : []))),
});
