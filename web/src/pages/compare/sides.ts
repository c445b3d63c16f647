// Which two runs, or which two ranks of one, are compared.

import type { Query } from "../../api/paths";
import type { RunSummary } from "../../api/types";
import { rankNumber } from "../../state/rank";

/** A run, or one rank of it. */
export interface Side {
  readonly run: number;
  readonly rank: number | null;
}

/** A run in the list of runs. */
export type Run = Pick<RunSummary, "id" | "key" | "name">;

/** What was before, and what is now. */
export interface Sides {
  readonly a: Side;
  readonly b: Side;
}

/** What the address says; -1 is a run that is not there. */
export interface Chosen {
  readonly run: number;
  readonly rank: string | undefined;
  readonly b: number | undefined;
  readonly bRank: string | undefined;
}

/**
 * The two sides. What nobody chose is the next run, or else the one before; where there is only one run, another of its
 * ranks. `ranks` are those of the first side's run. Null when there is nothing to compare with.
 */
export function sidesOf(chosen: Chosen, runs: readonly number[], ranks: readonly number[]): Sides | null {
  const [rank, bRank] = [rankNumber(chosen.rank), rankNumber(chosen.bRank)];
  const next = runs.find((id) => id > chosen.run) ?? runs.findLast((id) => id < chosen.run);
  const other = chosen.b ?? next ?? (ranks.length > 1 ? chosen.run : null);
  if (other === null) return null;
  if (other !== chosen.run) return { a: { run: chosen.run, rank }, b: { run: other, rank: bRank } };
  // Two ranks of one run: each side needs one.
  const a = rank ?? ranks.find((known) => known !== bRank) ?? null;
  const b = bRank ?? ranks.find((known) => known !== a) ?? null;
  return { a: { run: other, rank: a }, b: { run: other, rank: b } };
}

/** The sides as parameters of a request. */
export const queryOf = ({ a, b }: Sides): Query => [
  ["a", a.run],
  ["b", b.run],
  ["a_rank", a.rank],
  ["b_rank", b.rank],
];

/** The sides as they stand in the address. */
export function changesFor({ a, b }: Sides, runs: readonly Run[]): Record<string, string | null> {
  const text = (rank: number | null) => (rank === null ? null : String(rank));
  const key = ({ run }: Side) => runs.find(({ id }) => id === run)?.key ?? String(run);
  return { run: key(a), rank: text(a.rank), b: key(b), "b-rank": text(b.rank) };
}

/** A side as a person calls it. */
export function sideName({ run, rank }: Side, runs: readonly Run[]): string {
  const name = runs.find((each) => each.id === run)?.name ?? `run ${run}`;
  return rank === null ? name : `${name}, rank ${rank}`;
}
