import { runPath, withQuery } from "../../api/paths";
import type { Envelope, Row } from "../../api/types";
import { Choices } from "../../components/Choices";
import { bucketMs } from "../../components/charts/buckets";
import { Figure } from "../../components/charts/Figure";
import { TimeSeries } from "../../components/charts/TimeSeries";
import { Definition } from "../../components/Definition";
import { ErrorNotice, Loading } from "../../components/Notice";
import { useAnswer } from "../../state/answer";
import { chooseRange, range, withRank } from "../../state/range";
import { param, selection, timeWindow } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { shownSpan, stepMarks } from "../../state/shown";
import { useSteps } from "../../state/steps";

const UTILIZATION = { name: "utilization_ratio", words: "kernels run", colour: "compute" } as const;
const SM_EFFICIENCY = {
  name: "sm_efficiency_ratio",
  words: "multiprocessors in use (estimated SM efficiency)",
  colour: "label",
  isDashed: true,
} as const;
const OCCUPANCY = { name: "occupancy_ratio", words: "occupancy (estimated)", colour: "copy" } as const;
const TENSOR_CORES = {
  name: "tensor_core_ratio",
  words: "computing time in kernels that use tensor cores",
  colour: "communication",
  isDashed: true,
} as const;
/** Buckets that are drawn. */
const MOST = 10_000;

const idOf = (row: Row): string => `${row.rank}.${row.device}`;

/** How well a device is used over time, with steps marked. */
export function Utilization({ devices }: { devices: readonly Row[] }) {
  const device = devices.find((row) => idOf(row) === param("device")) ?? devices[0];
  if (!device) return null;
  return (
    <section aria-label="Over time">
      <h2>
        Over time <Definition analysis="gpu_utilization_curve" />
      </h2>
      {devices.length > 1 && (
        <Choices
          label="Device"
          name="device"
          value={idOf(device)}
          options={devices.map((row) => [idOf(row), `GPU ${row.device} of rank ${row.rank}`] as const)}
        />
      )}
      <Curve device={device} />
    </section>
  );
}

function Curve({ device }: { device: Row }) {
  const known = detail.value;
  const rank = Number(device.rank);
  const span = known?.span ?? null;
  const path = withQuery(runPath(runId.value, "analyses/gpu_utilization_curve"), [
    ...withRank(selection.value, rank),
    ["where", `device:eq:${device.device}`],
    ["bucket_ms", span && bucketMs({ start_ns: Number(span.start_ns), end_ns: Number(span.end_ns) })],
    ["limit", MOST],
  ]);
  const answer = useAnswer<Envelope>(path, known?.version ?? 0);
  const steps = useSteps(known, rank);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (steps.state === "failed") return <ErrorNotice error={steps.error} />;
  if (!answer.value || !steps.value || !known) return <Loading what="Following the device…" />;
  const rows = answer.value.results;
  const last = rows.at(-1);
  if (!last) return null;
  const within = shownSpan(known, steps.value, { step: param("step"), window: timeWindow.value });
  const answered = [SM_EFFICIENCY, OCCUPANCY, TENSOR_CORES].filter(({ name }) =>
    rows.some((row) => row[name] !== null),
  );
  return (
    <Figure name="utilization" isCanvas={true} title={<span>Share of the time, and of the multiprocessors</span>}>
      <TimeSeries
        label={`Use of GPU ${device.device} of rank ${device.rank} over time`}
        rows={rows}
        time="start_ns"
        within={within}
        until_ns={Number(last.start_ns) + Number(last.span_ns)}
        unit="ratio"
        series={[UTILIZATION, ...answered]}
        marks={stepMarks(steps.value)}
        range={range.value}
        onRange={chooseRange}
      />
    </Figure>
  );
}
