import type { Row } from "../../api/types";
import { Choices } from "../../components/Choices";
import { linkedName, linksOfName, modulesBelow, pageOfName, type RowLink } from "../../components/links";
import { Empty } from "../../components/Notice";
import { TopBars } from "../../components/TopBars";
import { Table } from "../../components/table/Table";
import { Words } from "../../components/Words";
import { hrefWith, param } from "../../state/route";
import { detail } from "../../state/runs";
import { Durations } from "./Durations";

const GROUPS = [
  ["name", "name"],
  ["module", "name and module"],
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
      {group === "module" && detail.value?.has.modules === false && (
        <Empty>
          <Words text="No modules were recorded: `stepscope record` records them, without `--no-modules`." />
        </Empty>
      )}
      <TopBars
        nouns="kernels"
        analysis="kernels"
        isDevice={true}
        by={by}
        name={group === "module" ? "module" : "name"}
        nameless="outside of modules"
        beside={group === "module" ? "name" : undefined}
        apart={["op", "grid", "block"]}
        query={query}
        linkOf={(row) => kernelLinks(row)[0]?.href}
      />
      <Table
        key={group}
        analysis="kernels"
        title="All kernels"
        query={query}
        order={by}
        hidden={["min_ns"]}
        linksOf={kernelLinks}
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
        linksOf={launchLinks(launches === "call" ? "api" : "kernel")}
      />
    </>
  );
}

/** From a kernel to who launches it, its runs on the timeline, how long they take, and the operator or module that it is of. */
function kernelLinks(row: Row): RowLink[] {
  if (typeof row.name !== "string") return [];
  const durations = { label: "How long its runs take", href: hrefWith({ kernel: linkedName(row.name) }) };
  const operator = typeof row.op === "string" ? pageOfName("op", row.op) : null;
  const links = [...linksOfName("kernel", row.name), durations];
  if (operator !== null) links.push({ label: "Its operator", href: operator });
  if (typeof row.module === "string") links.push({ label: "Its module", href: modulesBelow(row.module) });
  return links;
}

/** From a row of launches, whose name is that of a call or of what it launches. */
const launchLinks = (kind: string) => (row: Row) => (typeof row.name === "string" ? linksOfName(kind, row.name) : []);
