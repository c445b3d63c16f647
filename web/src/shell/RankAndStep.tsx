import { MAX_OPTIONS, PickOne } from "../components/PickOne";
import { RankPick } from "../components/RankPick";
import { param, setParams, stepChanges } from "../state/route";
import { detail } from "../state/runs";
import { numbersFrom, useSteps } from "../state/steps";

/** Of the whole run, or of one rank or step. */
export function RankAndStep() {
  const known = detail.value;
  const rank = param("rank");
  const step = param("step");
  const own = useSteps(known, rank);
  if (!known) return null;
  // Those of the rank; of all ranks where none is chosen, and until they are known. One more than can be picked says that
  // there are too many.
  const steps = own.value
    ? [...new Set(own.value.map((step) => String(step.number)))]
    : numbersFrom(known.steps, 0, MAX_OPTIONS + 1);
  return (
    <>
      {(known.run.ranks.length > 1 || rank !== undefined) && <RankPick label="Rank" />}
      {(steps.length > 1 || step !== undefined) && (
        <PickOne
          label="Step"
          all="all steps"
          value={step}
          options={steps}
          onChange={(step) => setParams(stepChanges(step))}
        />
      )}
    </>
  );
}
