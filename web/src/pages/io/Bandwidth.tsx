import { runPath, withQuery } from "../../api/paths";
import type { Envelope } from "../../api/types";
import { Choices } from "../../components/Choices";
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
import { bucketMs } from "./buckets";

const SHOWS = [
  ["bandwidth", "bandwidth"],
  ["time", "time in calls"],
] as const;
const BANDWIDTHS: readonly Series[] = [
  { name: "read_bytes_per_s", words: "read", colour: "input" },
  { name: "write_bytes_per_s", words: "written", colour: "copy", isDashed: true },
];
const TIMES: readonly Series[] = [
  { name: "busy_ns", words: "in any call", colour: "label" },
  { name: "read_ns", words: "reading", colour: "input" },
  { name: "write_ns", words: "writing", colour: "copy", isDashed: true },
  { name: "exposed_ns", words: "while no device works", colour: "synchronization", isDashed: true },
];

/** How fast files are read and written, or how long threads are in calls on them, over time. */
export function Bandwidth({ rank }: { rank: string }) {
  const known = detail.value;
  const steps = useSteps(known, rank);
  const within =
    known && steps.value && shownSpan(known, steps.value, { step: param("step"), window: timeWindow.value });
  const path = withQuery(runPath(runId.value, "analyses/io_curve"), [
    ...withRank(selection.value, rank),
    ["bucket_ms", within ? bucketMs(within) : null],
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
  const has = ({ name }: Series) => columns.some((column) => column.name === name && column.has_answers);
  return (
    <section aria-label="Over time" aria-busy={answer.state === "loading"}>
      <h2>
        Over time{known.run.ranks.length > 1 && `, rank ${rank}`} <Definition analysis="io_curve" />
      </h2>
      <Choices label="Show" name="show" value={show} options={SHOWS} />
      <Figure
        name="io"
        isCanvas={true}
        title={<span>In buckets of {formatNs(Math.round(Number(bucketMs(within)) * 1e6))}</span>}
      >
        <TimeSeries
          label={show === "bandwidth" ? "Bandwidth of files over time" : "Time in calls on files, of each bucket"}
          rows={results}
          time="start_ns"
          within={within}
          until_ns={last ? Number(last.start_ns) + Number(last.span_ns) : within.end_ns}
          unit={show === "bandwidth" ? "bytes_per_s" : "ns"}
          series={(show === "bandwidth" ? BANDWIDTHS : TIMES).filter(has)}
          marks={stepMarks(steps.value)}
          range={range.value}
          onRange={chooseRange}
        />
      </Figure>
    </section>
  );
}
