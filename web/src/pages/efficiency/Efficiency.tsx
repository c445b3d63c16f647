import { runPath, withQuery } from "../../api/paths";
import type { Envelope } from "../../api/types";
import { timelineSearch } from "../../components/links";
import { ErrorNotice, Loading } from "../../components/Notice";
import { Table } from "../../components/table/Table";
import { useAnswer } from "../../state/answer";
import { selection } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { Roofline } from "./Roofline";
import { Utilization } from "./Utilization";

/** How much of what devices could do the job uses. */
export default function Efficiency() {
  const path = withQuery(runPath(runId.value, "analyses/device_peaks"), [...selection.value, ["limit", 1_000]]);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading what="Looking up the devices…" />;
  const devices = answer.value.results;
  return (
    <>
      <h1>Efficiency</h1>
      <Table
        analysis="gpu_utilization"
        title="Use of devices"
        says="Of the time from the first to the last device event: when kernels run, how many multiprocessors they use, and how full these are."
        prefix="u."
        height={8}
      />
      <Table
        analysis="device_peaks"
        title="Peak rates, and the share that is used"
        says="The utilization of operations is what is called MFU: the time that the operations would take at the peak rate, as a share of the time."
        prefix="p."
        height={8}
        hidden={["fp64_tensor_flops_per_s", "fp64_flops_per_s", "int8_flops_per_s", "fp8_flops_per_s"]}
      />
      <Utilization devices={devices} />
      <Roofline devices={devices} />
      <Table
        analysis="copies"
        title="Copies"
        says="How much was copied in each direction, how fast, and what part that is of what the link carries."
        isOptional
        prefix="c."
        height={8}
      />
      <Table
        analysis="graphs"
        title="Launches of graphs"
        says="Of the time that launches of a graph take on the device, the gap is what could be gained within the graph."
        isOptional
        prefix="g."
        height={8}
        linksOf={({ call }) =>
          typeof call === "string" ? [{ label: "Its launches on the timeline", href: timelineSearch(call) }] : []
        }
      />
    </>
  );
}
