import type { PartColumn } from "../../components/charts/rank_bars";
import { averageOrStep } from "./chosen";
import { RankChart } from "./RankChart";

const PARTS: readonly PartColumn[] = [
  ["compute", "compute_ns"],
  ["overlap", "overlap_ns"],
  ["exposed_comm", "exposed_comm_ns"],
  ["neither", "other_ns"],
];
const ORDERS = [
  ["rank", "rank", "rank", "that computes longest"],
  ["compute", "computation, longest first", ["compute_ns", "overlap_ns"], "that computes longest"],
  ["comm", "exposed communication, longest first", ["exposed_comm_ns"], "with the most exposed communication"],
  ["other", "neither, longest first", ["other_ns"], "with the most of neither"],
  ["step", "the step, longest first", ["total_ns"], "with the longest step"],
] as const;

/** How each rank divides its average step, or the one that was chosen, into computation and communication. */
export function RankOverview() {
  const { condition, of } = averageOrStep();
  return (
    <RankChart
      analysis="ranks_overview"
      name="order"
      title={`Computation and communication of ranks in ${of}`}
      label={`Computation and communication of each rank in ${of}`}
      query={[condition]}
      up={PARTS}
      orders={ORDERS}
    />
  );
}
