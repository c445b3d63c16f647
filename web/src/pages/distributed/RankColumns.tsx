import { runPath, withQuery } from "../../api/paths";
import type { Envelope } from "../../api/types";
import { Figure } from "../../components/charts/Figure";
import { Legend } from "../../components/charts/Legend";
import { StackedColumns } from "../../components/charts/StackedColumns";
import { columnsOf, partsIn } from "../../components/charts/steps";
import { ErrorNotice, Loading } from "../../components/Notice";
import { formatCount } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { param, setParams } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { shownPart } from "./heat";

/** Columns that are drawn at once. */
const DRAWN = 128;

/** Where the time of a rank's average step goes, or of the step that was chosen, rank beside rank. */
export function RankColumns() {
  const known = detail.value;
  const [rank, step] = [param("rank"), param("step")];
  // Averages have no step.
  const part = step === undefined ? (["where", "step:eq:"] as const) : (["step", step] as const);
  const query = [part, ["limit", 10_000] as const];
  const path = withQuery(runPath(runId.value, "analyses/step_breakdown"), query);
  const answer = useAnswer<Envelope>(path, known?.version ?? 0);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading what="Computing steps…" />;
  const all = columnsOf(answer.value.results, step === undefined ? "ranks" : "steps", { rank, step });
  const columns = all.map((column, at) => {
    const label = String(answer.value?.results[at]?.rank ?? column.label);
    return { ...column, label, isChosen: label === rank };
  });
  if (columns.length === 0) return null;
  const labels = [...new Set(columns.map((column) => column.label))];
  const drawn = new Set(shownPart(labels, DRAWN, param("ranks-from"), rank));
  const name = step === undefined ? "Average step of each rank" : `Step ${step} of each rank`;
  return (
    <section aria-label={name}>
      <h2>{name}</h2>
      <Figure name="ranks" title={<Legend parts={partsIn(columns)} />}>
        <StackedColumns
          label={name}
          columns={columns.filter((column) => drawn.has(column.label))}
          onChoose={(column) => setParams({ rank: column.isChosen ? null : column.label })}
        />
        <p class="dim">
          A column is a rank; click one to filter every page to it.
          {labels.length > drawn.size &&
            ` ${formatCount(drawn.size)} of ${formatCount(labels.length)} are drawn: those from the map on; all are in the table of steps.`}
        </p>
      </Figure>
    </section>
  );
}
