// What charts of ranks are of, by what was chosen for all pages.

import { param, selection } from "../../state/route";

/** The condition for rows of one or the other, and what that is called. Averages have no step, nor has a run without steps. */
export function averageOrStep() {
  const step = param("step");
  return step === undefined
    ? ({ condition: ["where", "step:eq:"], of: "the average step" } as const)
    : ({ condition: ["step", step], of: `step ${step}` } as const);
}

/** What was chosen for all pages, but for the rank. */
export const ofAllRanks = () => selection.value.filter(([name]) => name !== "rank");
