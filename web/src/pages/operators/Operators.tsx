import type { Row } from "../../api/types";
import { Choices } from "../../components/Choices";
import { Empty } from "../../components/Notice";
import { TopBars } from "../../components/TopBars";
import { Table } from "../../components/table/Table";
import { Words } from "../../components/Words";
import { param } from "../../state/route";
import { analyses, detail } from "../../state/runs";
import { operatorLinks } from "./links";
import { Slowest } from "./Slowest";

const METRICS = [
  ["device_self_ns", "device self time"],
  ["device_total_ns", "device total time"],
  ["host_self_ns", "host self time"],
  ["host_total_ns", "host total time"],
  ["count", "calls"],
  ["flops", "operations"],
  ["bytes", "bytes"],
] as const;

/** What a row stands for, in words, and what must have been recorded for it. */
const GROUPS: Readonly<Record<string, readonly [words: string, column: string]>> = {
  name: ["name", "name"],
  shapes: ["name and input shapes", "shapes"],
  stack: ["name and call stack", "stack"],
  module: ["name and module", "module"],
  category: ["category", "category"],
};

/** What a row is called that has nothing of what rows are grouped by. */
const NAMELESS: Readonly<Record<string, string>> = {
  shapes: "shapes not known",
  stack: "without a call stack",
  module: "outside of modules",
};

/** What operators cost on the host and on devices. */
export default function Operators() {
  const has = detail.value?.has;
  // Of operators that have none, calls of Python around them make one.
  const hasStacks = has === undefined || has.stacks || has.python;
  const groups = analyses.value.get("operators")?.accepts.group_by ?? ["name"];
  const group = param("group") ?? groups[0] ?? "name";
  const metrics = has?.devices ? METRICS : METRICS.filter(([name]) => !name.startsWith("device"));
  const by = metrics.find(([name]) => name === param("by"))?.[0] ?? metrics[0]?.[0] ?? "host_self_ns";
  const query = [["group_by", group === groups[0] ? null : group]] as const;
  // What a category is called is the name of no call.
  const linksOf = (row: Row) => (group === "category" ? [] : operatorLinks(row));
  return (
    <>
      <h1>Operators</h1>
      <div class="choices">
        <Choices
          label="Group by"
          name="group"
          value={group}
          options={groups.map((name) => [name, GROUPS[name]?.[0] ?? name])}
        />
        <Choices label="Sort by" name="by" value={by} options={metrics} />
      </div>
      {group === "shapes" && has?.shapes === false && (
        <Empty>
          <Words text="No shapes were recorded: `stepscope record --shapes` records them, and torch.profiler with `record_shapes=True`." />
        </Empty>
      )}
      {group === "stack" && !hasStacks && (
        <Empty>
          <Words text="No stacks were recorded: `stepscope record --stacks` records them, and torch.profiler with `with_stack=True`." />
        </Empty>
      )}
      {group === "module" && has?.modules === false && (
        <Empty>
          <Words text="No modules were recorded: `stepscope record` records them, without `--no-modules`." />
        </Empty>
      )}
      {hasStacks && <Slowest by={by} words={metrics.find(([name]) => name === by)?.[1] ?? by} />}
      <TopBars
        analysis="operators"
        isDevice={by.startsWith("device")}
        by={by}
        nouns={group === "category" ? "categories" : "operators"}
        name={GROUPS[group]?.[1] ?? "name"}
        nameless={NAMELESS[group]}
        isStack={group === "stack"}
        beside={group === "category" ? undefined : "name"}
        query={query}
        linkOf={(row) => linksOf(row)[0]?.href}
      />
      <Table
        key={group}
        analysis="operators"
        title="All operators"
        query={query}
        order={by}
        hidden={["tensor_core_eligible", "device_union_ns"]}
        linksOf={linksOf}
      />
    </>
  );
}
