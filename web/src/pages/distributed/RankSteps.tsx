import { STEP_COLUMNS } from "../../components/charts/steps";
import { averageOrStep } from "./chosen";
import { RankChart } from "./RankChart";

const ORDERS = [
  ["rank", "rank", "rank", "with the longest step"],
  ["step", "the step, longest first", ["total_ns"], "with the longest step"],
] as const;

/** Where the time of a rank's average step goes, or of the step that was chosen, rank beside rank. */
export function RankSteps() {
  const { condition, of } = averageOrStep();
  return (
    <RankChart
      analysis="step_breakdown"
      name="ranks"
      title={`Where the time of ${of} goes on each rank`}
      label={`Where the time of ${of} goes`}
      query={[condition]}
      up={STEP_COLUMNS}
      orders={ORDERS}
    />
  );
}
