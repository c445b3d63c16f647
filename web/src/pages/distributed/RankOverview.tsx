import { runPath, withQuery } from "../../api/paths";
import type { Envelope } from "../../api/types";
import { Choices } from "../../components/Choices";
import { Figure } from "../../components/charts/Figure";
import { Legend } from "../../components/charts/Legend";
import { Definition } from "../../components/Definition";
import { ErrorNotice, Loading } from "../../components/Notice";
import { formatCount } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { param, setParams } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { RankBars } from "./RankBars";
import { barsOf, type PartColumn, partsOf } from "./rank_bars";

const PARTS: readonly PartColumn[] = [
  ["compute", "compute_ns"],
  ["overlap", "overlap_ns"],
  ["exposed_comm", "exposed_comm_ns"],
  ["neither", "other_ns"],
];
const COMPUTING = ["compute_ns", "overlap_ns"];
/** Orders, their columns, and what stands out in them. */
const ORDERS = [
  ["rank", "rank", "rank", "that computes longest"],
  ["compute", "computation, longest first", COMPUTING, "that computes longest"],
  ["comm", "exposed communication, longest first", ["exposed_comm_ns"], "with the most exposed communication"],
  ["other", "neither, longest first", ["other_ns"], "with the most of neither"],
  ["step", "the step, longest first", ["total_ns"], "with the longest step"],
] as const;
const MOST_ROWS = 10_000;

/** How each rank divides its average step, or the one that was chosen, into computation and communication. */
export function RankOverview() {
  const [rank, step] = [param("rank"), param("step")];
  const [order, , columns, standsOut] = ORDERS.find(([name]) => name === param("order")) ?? ORDERS[0];
  // All ranks, also when one is chosen: it is where one is chosen. Averages have no step, nor has a run without steps.
  const part = step === undefined ? (["where", "step:eq:"] as const) : (["step", step] as const);
  const path = withQuery(runPath(runId.value, "analyses/ranks_overview"), [part, ["limit", MOST_ROWS]]);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading what="Computing what ranks do…" />;
  const { results, page } = answer.value;
  if (results.length === 0) return null;
  const bars = barsOf(results, PARTS, [], columns, COMPUTING);
  const of = step === undefined ? "the average step" : `step ${step}`;
  return (
    <section aria-label="Computation and communication of ranks" aria-busy={answer.state === "loading"}>
      <h2>
        Computation and communication of ranks in {of} <Definition analysis="ranks_overview" />
      </h2>
      <div class="choices">
        <Choices
          label="In the order of"
          name="order"
          value={order}
          options={ORDERS.map(([name, words]) => [name, words])}
        />
      </div>
      <Figure name="ranks-overview" title={<Legend parts={partsOf(bars, PARTS)} />} isCanvas>
        <RankBars
          label={`Computation and communication of each rank in ${of}`}
          bars={bars}
          standsOut={standsOut}
          chosen={rank}
          onChoose={(chosen) => setParams({ rank: chosen === rank ? null : chosen })}
        />
      </Figure>
      {page.matching > results.length && (
        <p class="dim">
          {formatCount(results.length)} of {formatCount(page.matching)} ranks are drawn.
        </p>
      )}
    </section>
  );
}
