import { rankChanges } from "../state/rank";
import { param, setParams } from "../state/route";
import { detail } from "../state/runs";
import { PickOne } from "./PickOne";

/** Picks the rank that every page is of, or all. */
export function RankPick({ label }: { label: string }) {
  const ranks = (detail.value?.run.ranks ?? []).map(String);
  const choose = (rank: string | null) => setParams(rankChanges(rank));
  return <PickOne label={label} all="all ranks" value={param("rank")} options={ranks} onChange={choose} />;
}
