import { runPath, withQuery } from "../../api/paths";
import type { Envelope } from "../../api/types";
import { Choices } from "../../components/Choices";
import { Figure } from "../../components/charts/Figure";
import { Definition } from "../../components/Definition";
import { timelineOver } from "../../components/links";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { Value } from "../../components/Value";
import { formatCount } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { hrefWith, param, setParams } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { countOfNumbers, numbersFrom, placeOfNumber } from "../../state/steps";
import { HeatMap } from "./HeatMap";
import { firstShown, type Heat, type HeatCell, heatOf, SHADES } from "./heat";

/** Ranks and steps that are drawn at once; links lead to others. */
const RANKS = 64;
const STEPS = 100;
const MOST_ROWS = 10_000;

/** How long each step of each rank took, as a map; a step that is chosen on it is the step of every page. */
export function StepMap() {
  const known = detail.value;
  const [rank, step] = [param("rank"), param("step")];
  const against = param("against") === "step" ? "step" : "all";
  const allRanks = (known?.run.ranks ?? []).map(String);
  const allSteps = known?.steps ?? { numbers: [] };
  const stepCount = countOfNumbers(allSteps);
  const firstRank = firstShown(allRanks.length, RANKS, param("ranks-from"), allRanks.indexOf(rank ?? ""));
  const firstStep = firstShown(stepCount, STEPS, param("steps-from"), placeOfNumber(allSteps, step));
  const ranks = allRanks.slice(firstRank, firstRank + RANKS);
  const steps = numbersFrom(allSteps, firstStep, STEPS);
  const conditions = [
    ["where", `rank:ge:${ranks[0]}`],
    ["where", `rank:le:${ranks[ranks.length - 1]}`],
    ["where", `step:ge:${steps[0]}`],
    ["where", `step:le:${steps[steps.length - 1]}`],
    ["limit", MOST_ROWS],
  ] as const;
  // The map has every rank and step, also when one is chosen: it is where one is chosen.
  const path = withQuery(runPath(runId.value, "analyses/step_breakdown"), conditions);
  const answer = useAnswer<Envelope>(steps.length > 0 ? path : null, known?.version ?? 0);
  if (steps.length === 0)
    return <Empty>No step was recorded or found: what the ranks do cannot be compared by step.</Empty>;
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading what="Computing steps…" />;
  const heat = heatOf(answer.value.results, ranks, steps, against);
  const isChosen = (cell: HeatCell) => cell.rank === rank && cell.step === step;
  const onChoose = (cell: HeatCell) =>
    setParams(isChosen(cell) ? { rank: null, step: null } : { rank: cell.rank, step: cell.step });
  const here = heat.cells.flat().find((cell) => cell !== null && isChosen(cell));
  return (
    <section aria-label="Steps of ranks">
      <h2>
        How long each step of each rank takes <Definition analysis="step_breakdown" />
      </h2>
      <div class="choices">
        <Choices
          label="A step is compared with"
          name="against"
          value={against}
          options={[
            ["all", "all steps that are shown"],
            ["step", "the same step of other ranks"],
          ]}
        />
      </div>
      <Figure name="steps-of-ranks" title={<Legend heat={heat} isWithinStep={against === "step"} />}>
        <HeatMap
          label="Time of each step of each rank; ranks below each other, steps side by side"
          heat={heat}
          ranks={ranks}
          steps={steps}
          isChosen={isChosen}
          onChoose={onChoose}
        />
      </Figure>
      <p class="dim">
        {here ? (
          <>
            Step {here.step} of rank {here.rank}: <Value unit="ns" value={here.total_ns} />.{" "}
            <a href={timelineOver({ rank: BigInt(here.rank), start_ns: here.start_ns, length_ns: here.total_ns })}>
              On the timeline
            </a>{" "}
            · <a href={hrefWith({ rank: null, step: null })}>All ranks and steps</a>
          </>
        ) : (
          "Ranks are below each other, steps side by side. Click a cell to filter every page to it."
        )}
        <Others name="ranks-from" what="ranks" all={allRanks.length} first={firstRank} size={RANKS} />
        <Others name="steps-from" what="steps" all={stepCount} first={firstStep} size={STEPS} />
      </p>
    </section>
  );
}

function Legend({ heat, isWithinStep }: { heat: Heat; isWithinStep: boolean }) {
  return (
    <span class="heat-legend">
      {heat.range === null || isWithinStep ? "shortest" : <Value unit="ns" value={heat.range[0]} />}
      <svg width={SHADES * 16} height="14" aria-hidden="true" focusable="false">
        {Array.from({ length: SHADES }, (_, shade) => (
          <rect key={shade} class={`heat-${shade}`} x={shade * 16} width="15" height="14" />
        ))}
      </svg>
      {heat.range === null || isWithinStep ? "longest" : <Value unit="ns" value={heat.range[1]} />}
      {heat.cells.some((cells) => cells.some((cell) => cell?.shade === null)) && (
        <span>
          {" "}
          <svg width="16" height="14" aria-hidden="true" focusable="false">
            <rect class="heat-cut" x="0.5" y="0.5" width="14" height="13" />
            <line class="heat-line" x1="1" y1="13" x2="14" y2="1" />
          </svg>{" "}
          cut by recording
        </span>
      )}
    </span>
  );
}

interface OthersProps {
  readonly name: string;
  readonly what: string;
  readonly all: number;
  readonly first: number;
  readonly size: number;
}

/** Links to what is before and after the part that is shown. */
function Others({ name, what, all, first, size }: OthersProps) {
  const shown = Math.min(size, all - first);
  if (shown === all) return null;
  const before = first > 0 ? hrefWith({ [name]: String(Math.max(0, first - size)) }) : null;
  const after = first + shown < all ? hrefWith({ [name]: String(first + size) }) : null;
  return (
    <>
      {" "}
      {formatCount(shown)} of {formatCount(all)} {what} are shown. {before && <a href={before}>The {what} before</a>}{" "}
      {after && <a href={after}>The {what} after</a>}
    </>
  );
}
