import type { StepOfRun } from "../../api/types";
import type { StepBand } from "../../canvas/scene";

/** Steps as the canvas marks them. */
export const stepBands = (steps: readonly StepOfRun[]): StepBand[] =>
  steps.map((step) => ({
    number: Number(step.number),
    rank: step.rank,
    start_ns: Number(step.start_ns),
    end_ns: Number(step.end_ns),
  }));
