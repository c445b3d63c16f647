import type { Row } from "../../api/types";
import { Choices } from "../../components/Choices";
import { IdleCauses } from "../../components/IdleCauses";
import { timelineSearch } from "../../components/links";
import { type RowLink, stretchLinks } from "../../components/table/links";
import { Table } from "../../components/table/Table";
import { hrefOf, param } from "../../state/route";
import { detail } from "../../state/runs";
import { CriticalPath } from "./CriticalPath";

const WAITS = [
  ["total_ns", "total time"],
  ["idle_ns", "time in which the device idles"],
  ["count", "waits"],
] as const;

/** Why devices do nothing, and what the length of a step consists of. */
export default function Idle() {
  const by = WAITS.find(([name]) => name === param("waits"))?.[0] ?? "total_ns";
  return (
    <>
      <h1>Why devices idle</h1>
      <IdleCauses isWhole />
      <Table
        analysis="idle_gaps"
        title="Longest gaps"
        says="What the host was in for most of the gap, and what ended it."
        prefix="g."
        height={10}
        linksOf={gapLinks}
      />
      <CriticalPath />
      <Choices label="Sort waits by" name="waits" value={by} options={WAITS} />
      <Table
        key={by}
        analysis="synchronizations"
        title="Waits for devices"
        says="Calls in which the host waits, by the operator or label that they are in, and what the device did meanwhile."
        prefix="w."
        height={8}
        order={by}
        linksOf={(row) => (typeof row.call === "string" ? found(row.call) : [])}
      />
      <Table
        analysis="queue_length"
        title="Work in the queues"
        says="An empty queue means that the device has caught up with the host."
        prefix="q."
        height={8}
        linksOf={queueLinks}
      />
      <p>
        <a href={hrefOf("kernels")}>How long launches take, and how long launched work waits</a>
      </p>
    </>
  );
}

function gapLinks(row: Row): RowLink[] {
  const links = stretchLinks(row, "idle_ns");
  return typeof row.host === "string" ? [...links, ...found(row.host)] : links;
}

/** To the rows of the device whose queue it is, of which the first show its use and how long the queue is. */
function queueLinks(row: Row): RowLink[] {
  const isOfSeveral = (detail.value?.run.ranks.length ?? 1) > 1;
  const rank = isOfSeveral ? { rank: String(row.rank) } : {};
  return [{ label: "Its length on the timeline", href: hrefOf("timeline", { ...rank, tracks: `GPU ${row.device}` }) }];
}

const found = (name: string): RowLink[] => [{ label: `${name} on the timeline`, href: timelineSearch(name) }];
