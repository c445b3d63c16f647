import { param, setParams, stepChanges } from "../state/route";
import { detail } from "../state/runs";
import { numbersFrom, useSteps } from "../state/steps";

/** The most options to pick from: a choice of more is typed. */
const MAX_OPTIONS = 300;

/** Of the whole run, or of one rank or step. */
export function RankAndStep() {
  const known = detail.value;
  const rank = param("rank");
  const step = param("step");
  const own = useSteps(known, rank);
  if (!known) return null;
  const ranks = known.run.ranks.map(String);
  // Those of the rank; of all ranks where none is chosen, and until they are known. One more than can be picked says that
  // there are too many.
  const steps = own.value
    ? [...new Set(own.value.map((step) => String(step.number)))]
    : numbersFrom(known.steps, 0, MAX_OPTIONS + 1);
  return (
    <>
      {(ranks.length > 1 || rank !== undefined) && (
        <Choice label="Rank" all="all ranks" value={rank} options={ranks} onChange={(rank) => setParams({ rank })} />
      )}
      {(steps.length > 1 || step !== undefined) && (
        <Choice
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

interface Props {
  readonly label: string;
  readonly all: string;
  readonly value: string | undefined;
  readonly options: readonly string[];
  readonly onChange: (value: string | null) => void;
}

function Choice({ label, all, value, options, onChange }: Props) {
  // What a link asks for is shown even when the run does not have it: the page then says so.
  const shown = value === undefined || options.includes(value) ? options : [value, ...options];
  if (shown.length > MAX_OPTIONS) {
    return (
      <label>
        {label}
        <input
          type="text"
          inputMode="numeric"
          size={8}
          placeholder={all}
          value={value ?? ""}
          onChange={(event) => onChange(event.currentTarget.value.trim() || null)}
        />
      </label>
    );
  }
  return (
    <label>
      {label}
      <select value={value ?? ""} onChange={(event) => onChange(event.currentTarget.value || null)}>
        <option value="">{all}</option>
        {shown.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </select>
    </label>
  );
}
