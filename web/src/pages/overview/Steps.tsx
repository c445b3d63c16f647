import { runPath, withQuery } from "../../api/paths";
import type { Envelope, Report } from "../../api/types";
import { BreakdownBar } from "../../components/charts/BreakdownBar";
import { BreakdownLegend } from "../../components/charts/BreakdownLegend";
import { Figure } from "../../components/charts/Figure";
import { RankBars } from "../../components/charts/RankBars";
import { barsOf } from "../../components/charts/rank_bars";
import { StackedColumns } from "../../components/charts/StackedColumns";
import { columnsOf, STEP_COLUMNS } from "../../components/charts/steps";
import { Definition } from "../../components/Definition";
import { ErrorNotice, Loading } from "../../components/Notice";
import { Value } from "../../components/Value";
import { formatCount } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { hrefWith, param, selection, setParams } from "../../state/route";
import { detail, runId } from "../../state/runs";

/** Columns that are shown at once; more are on the next page. */
const SHOWN = 120;

/** Steps as stacked columns, and where the time of an average step goes. */
export function Steps({ report }: { report: Report }) {
  const known = detail.value;
  const ranks = known?.run.ranks ?? [];
  const rank = param("rank") ?? (ranks.length === 1 ? String(ranks[0]) : undefined);
  const isOfRanks = rank === undefined;
  const from = Math.max(0, Number.parseInt(param("steps-from") ?? "0", 10) || 0);
  // The chart has all steps, also when one of them is chosen: it is where one is chosen.
  const path = withQuery(runPath(runId.value, "analyses/step_breakdown"), [
    ["rank", rank],
    ...selection.value.filter(([name]) => name.endsWith("_ns")),
    // Averages have no step, and are all that is drawn of several ranks.
    ["where", isOfRanks ? "step:eq:" : null],
    ["offset", isOfRanks ? 0 : from],
    ["limit", isOfRanks ? 10_000 : SHOWN],
  ]);
  const answer = useAnswer<Envelope>(path, known?.version ?? 0);
  const steps = report.steps;
  if (!steps) return null;
  const rows = answer.value?.results ?? [];
  const columns = isOfRanks ? [] : columnsOf(rows, param("step"));
  const total = answer.value?.page.total ?? 0;
  const inferred = steps.source === "optimizer" || steps.source === "kernels" ? ", inferred" : "";
  return (
    <section aria-label="Steps">
      <h2>
        Where the time of a step goes <Definition analysis="step_breakdown" />
      </h2>
      <p class="dim">
        {steps.source === "whole"
          ? "Nothing marks steps: what each rank recorded counts as one"
          : `${formatCount(steps.count)} ${steps.count === 1 ? "step" : "steps"}`}
        {inferred}
        {steps.incomplete_count > 0 && `, ${formatCount(steps.incomplete_count)} cut by recording`}
        {steps.count === 1 ? ": " : "; mean "}
        <Value unit="ns" value={steps.mean_ns} />
        {steps.count > 1 && (
          <>
            , from <Value unit="ns" value={steps.min_ns} /> to <Value unit="ns" value={steps.max_ns} />
          </>
        )}
      </p>
      {report.step_breakdown && (
        <>
          <BreakdownBar breakdown={report.step_breakdown} label="The mean step" />
          <BreakdownLegend breakdown={report.step_breakdown} label="Where the time goes" />
        </>
      )}
      {answer.state === "failed" && <ErrorNotice error={answer.error} />}
      {answer.state === "loading" && !answer.value && <Loading />}
      {isOfRanks && rows.length > 0 && (
        <RankBars
          name="steps"
          label="Average step of each rank"
          parts={STEP_COLUMNS}
          bars={barsOf(rows, STEP_COLUMNS, [], "rank", ["total_ns"])}
          standsOut="with the longest step"
        />
      )}
      {columns.length > 1 && (
        <Figure name="steps" title={<span class="dim">Click a step to filter every page to it.</span>}>
          <StackedColumns
            label={`Steps of rank ${rank}`}
            columns={columns}
            onChoose={(column) => setParams({ step: column.isChosen ? null : column.label })}
          />
          {total > SHOWN && (
            <p class="dim">
              {from > 0 && <a href={hrefWith({ "steps-from": String(Math.max(0, from - SHOWN)) })}>Earlier steps</a>}{" "}
              {from + SHOWN < total && <a href={hrefWith({ "steps-from": String(from + SHOWN) })}>Later steps</a>}
            </p>
          )}
        </Figure>
      )}
    </section>
  );
}
