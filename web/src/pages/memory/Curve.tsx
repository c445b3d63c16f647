import { runPath, withQuery } from "../../api/paths";
import type { Envelope } from "../../api/types";
import { Figure } from "../../components/charts/Figure";
import { TimeSeries } from "../../components/charts/TimeSeries";
import { Definition } from "../../components/Definition";
import { conditionsOf, type Memory } from "../../components/memories";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { useAnswer } from "../../state/answer";
import { chooseRange, range, withRank } from "../../state/range";
import { param, selection, timeWindow, whereWords } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { shownSpan, stepMarks } from "../../state/shown";
import { useSteps } from "../../state/steps";

const ALLOCATED = { name: "allocated_bytes", words: "allocated", colour: "compute" } as const;
const RESERVED = { name: "reserved_bytes", words: "reserved", colour: "label", isDashed: true } as const;

/** What is allocated and reserved over time, with steps marked. */
export function Curve({ memory, words }: { memory: Memory; words: string }) {
  const known = detail.value;
  const path = withQuery(runPath(runId.value, "analyses/memory_curve"), [
    ...withRank(selection.value, memory.rank),
    ...conditionsOf(memory).map((condition) => ["where", condition] as const),
    ["limit", 10_000],
  ]);
  const answer = useAnswer<Envelope>(path, known?.version ?? 0);
  const steps = useSteps(known, memory.rank);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (steps.state === "failed") return <ErrorNotice error={steps.error} />;
  if (!answer.value || !steps.value || !known) return <Loading what="Adding up memory…" />;
  const { results } = answer.value;
  if (results.length === 0) return <Empty>Nothing was allocated or freed {whereWords(selection.value)}.</Empty>;
  const within = shownSpan(known, steps.value, { step: param("step"), window: timeWindow.value });
  const hasReserve = results.some((row) => row[RESERVED.name] !== null);
  return (
    <section aria-label="Over time" aria-busy={answer.state === "loading"}>
      <h2>
        Over time, {words} <Definition analysis="memory_curve" />
      </h2>
      <Figure name="memory" isCanvas={true} title={<span>Memory in use{hasReserve && " and in reserve"}</span>}>
        <TimeSeries
          label={`Memory of ${words} over time`}
          rows={results}
          time="time_ns"
          within={within}
          until_ns={within.end_ns}
          unit="bytes"
          series={hasReserve ? [ALLOCATED, RESERVED] : [ALLOCATED]}
          marks={stepMarks(steps.value)}
          range={range.value}
          onRange={chooseRange}
        />
      </Figure>
    </section>
  );
}
