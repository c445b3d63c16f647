import type { PartColumn } from "../../components/charts/rank_bars";
import { ofAllRanks } from "./chosen";
import { RankChart } from "./RankChart";

const UP: readonly PartColumn[] = [
  ["transfer", "transfer_ns"],
  ["waiting", "waiting_ns"],
];
const DOWN: readonly PartColumn[] = [["held_up", "held_up_ns"]];
const ORDERS = [
  ["rank", "rank", "rank", "that holds up the others longest"],
  ["held", "holding up the others, longest first", ["held_up_ns"], "that holds up the others longest"],
  ["waiting", "waiting, longest first", ["waiting_ns"], "that waits longest"],
  ["transfer", "transfer, longest first", ["transfer_ns"], "with the longest transfer"],
] as const;

/** How long each rank waits in collectives, and how long it holds up the others. */
export function Waiting() {
  return (
    <RankChart
      analysis="stragglers"
      name="waiting"
      title="Transfer and waiting in collectives"
      label="Transfer and waiting of each rank, and how long it holds up the others"
      query={ofAllRanks()}
      up={UP}
      down={DOWN}
      orders={ORDERS}
      says="Upwards is the time of the rank in collectives; downwards, how long others wait for it alone."
    />
  );
}
