import { runPath, withQuery } from "../../api/paths";
import type { Envelope } from "../../api/types";
import { Choices } from "../../components/Choices";
import { bucketMs } from "../../components/charts/buckets";
import { Figure } from "../../components/charts/Figure";
import { type Series, TimeSeries } from "../../components/charts/TimeSeries";
import { Definition } from "../../components/Definition";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { formatNs } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { chooseRange, range, withRank } from "../../state/range";
import { param, selection, timeWindow, whereWords } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { shownSpan, stepMarks } from "../../state/shown";
import { useSteps } from "../../state/steps";
import { byGroup, SHOWN } from "./curve";

const SHOWS = [
  ["bandwidth", "bandwidth"],
  ["time", "time in calls"],
  ["calls", "calls in a second"],
] as const;
const GROUPS = [
  ["", "nothing"],
  ["layer", "layer"],
  ["action", "action"],
] as const;

/** How fast files are read and written, how long threads are in calls on them, or how many these are, over time. */
export function Bandwidth({ rank }: { rank: string }) {
  const known = detail.value;
  const steps = useSteps(known, rank);
  const within =
    known && steps.value && shownSpan(known, steps.value, { step: param("step"), window: timeWindow.value });
  const group = GROUPS.find(([name]) => name === param("split"))?.[0] ?? "";
  const path = withQuery(runPath(runId.value, "analyses/io_curve"), [
    ...withRank(selection.value, rank),
    ["bucket_ms", within ? bucketMs(within) : null],
    ["group_by", group || null],
    ["limit", 10_000],
  ]);
  const answer = useAnswer<Envelope>(within ? path : null, known?.version ?? 0);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (steps.state === "failed") return <ErrorNotice error={steps.error} />;
  if (!answer.value || !steps.value || !within || !known) return <Loading what="Adding up calls on files…" />;
  const { results, columns } = answer.value;
  if (results.length === 0)
    return (
      <Empty>
        Rank {rank} calls no files {whereWords(selection.value)}.
      </Empty>
    );
  const last = results[results.length - 1];
  const show = SHOWS.find(([name]) => name === param("show"))?.[0] ?? "bandwidth";
  const quantity = SHOWN[show];
  const has = ({ name }: Series) => columns.some((column) => column.name === name && column.has_answers);
  const { rows, lines } = group
    ? byGroup(results, group, quantity)
    : { rows: results, lines: quantity.lines.filter(has) };
  return (
    <section aria-label="Over time" aria-busy={answer.state === "loading"}>
      <h2>
        Over time{known.run.ranks.length > 1 && `, rank ${rank}`} <Definition analysis="io_curve" />
      </h2>
      <div class="choices">
        <Choices label="Show" name="show" value={show} options={SHOWS} />
        <Choices label="Split by" name="split" value={group} options={GROUPS} />
      </div>
      <Figure
        name="io"
        isCanvas={true}
        title={<span>In buckets of {formatNs(Math.round(Number(bucketMs(within)) * 1e6))}</span>}
      >
        <TimeSeries
          label={quantity.label}
          rows={rows}
          time="start_ns"
          within={within}
          until_ns={last ? Number(last.start_ns) + Number(last.span_ns) : within.end_ns}
          unit={quantity.unit}
          series={lines}
          marks={stepMarks(steps.value)}
          range={range.value}
          onRange={chooseRange}
        />
      </Figure>
    </section>
  );
}
