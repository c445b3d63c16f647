import type { Row } from "../../api/types";
import { Choices } from "../../components/Choices";
import { callersOf, linkedName, timelineSearch } from "../../components/links";
import { TopBars } from "../../components/TopBars";
import type { RowLink } from "../../components/table/links";
import { Table } from "../../components/table/Table";
import { hrefWith, param } from "../../state/route";
import { findPage } from "../registry";
import { Durations } from "./Durations";

const GROUPS = [
  ["name", "name"],
  ["properties", "name, operator and launch properties"],
] as const;
const LAUNCHES = [
  ["call", "call of the device's API"],
  ["name", "kernel, copy or fill"],
] as const;
const METRICS = [
  ["total_ns", "total time"],
  ["count", "runs"],
  ["mean_ns", "mean time"],
  ["max_ns", "longest run"],
] as const;

/** What kernels cost, how well they fill the device, and how they are launched. */
export default function Kernels() {
  const group = GROUPS.find(([name]) => name === param("group"))?.[0] ?? "name";
  const launches = LAUNCHES.find(([name]) => name === param("launches"))?.[0] ?? "call";
  const by = METRICS.find(([name]) => name === param("by"))?.[0] ?? "total_ns";
  const query = [["group_by", group === "name" ? null : group]] as const;
  return (
    <>
      <h1>Kernels</h1>
      <div class="choices">
        <Choices label="Group by" name="group" value={group} options={GROUPS} />
        <Choices label="Sort by" name="by" value={by} options={METRICS} />
      </div>
      <TopBars
        nouns="kernels"
        analysis="kernels"
        isDevice={true}
        by={by}
        name="name"
        apart={["op", "grid", "block"]}
        query={query}
      />
      <Table
        key={group}
        analysis="kernels"
        title="All kernels"
        query={query}
        order={by}
        hidden={["min_ns"]}
        linksOf={(row) => [...launchers(row), ...durations(row), ...onTimeline(row)]}
      />
      <Durations />
      <Choices label="Launches by" name="launches" value={launches} options={LAUNCHES} />
      <Table
        key={`launches ${launches}`}
        analysis="launch_statistics"
        title="Launches"
        query={[["group_by", launches === "call" ? null : launches]]}
        hidden={["delay_min_ns", "delay_outliers", "launch_p99_ns", "launch_max_ns"]}
        prefix="l."
        height={10}
        linksOf={onTimeline}
      />
    </>
  );
}

function launchers(row: Row): RowLink[] {
  return typeof row.name === "string" ? [{ label: "Who launches it", href: callersOf(row.name) }] : [];
}

function durations(row: Row): RowLink[] {
  if (typeof row.name !== "string") return [];
  return [{ label: "How long its runs take", href: hrefWith({ kernel: linkedName(row.name) }) }];
}

function onTimeline(row: Row): RowLink[] {
  if (typeof row.name !== "string" || !findPage("timeline")) return [];
  return [{ label: "On the timeline", href: timelineSearch(row.name) }];
}
