import { runPath, withQuery } from "../../api/paths";
import type { Envelope, Row } from "../../api/types";
import { Choices } from "../../components/Choices";
import { timelineAt, timelineSearch } from "../../components/links";
import { chosenMemory, conditionsOf, memoriesOf, memoryWords } from "../../components/memories";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { RangeForm } from "../../components/RangeForm";
import { TopBars } from "../../components/TopBars";
import type { RowLink } from "../../components/table/links";
import { Table } from "../../components/table/Table";
import { useAnswer } from "../../state/answer";
import { chooseRange, range, rangeSelection } from "../../state/range";
import { hrefOf, hrefWith, param, selection, whereWords } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { Curve } from "./Curve";
import { allocationLinks } from "./links";

const GROUPS = [
  ["name", "operator"],
  ["stack", "call stack"],
  ["module", "module"],
  ["category", "category"],
] as const;

const PLURALS = { name: "operators", stack: "call stacks", module: "modules", category: "categories" } as const;

/** How much memory is in use, when, by whom, and for how long. */
export default function Memory() {
  const known = detail.value;
  const path = withQuery(runPath(runId.value, "analyses/memory_summary"), [...selection.value, ["limit", 10_000]]);
  const answer = useAnswer<Envelope>(path, known?.version ?? 0);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading what="Adding up memory…" />;
  const rows = answer.value.results;
  const memory = chosenMemory(rows, param("memory"));
  if (!memory) return <Empty>Nothing was allocated or freed {whereWords(selection.value)}.</Empty>;

  const hasRanks = (known?.run.ranks.length ?? 1) > 1;
  const group = GROUPS.find(([name]) => name === param("group"))?.[0] ?? "name";
  const grouped = [["group_by", group === "name" ? null : group]] as const;
  const where = conditionsOf(memory);
  const conditions = where.map((condition) => ["where", condition] as const);
  const words = memoryWords(memory, hasRanks);
  return (
    <>
      <h1>Memory</h1>
      <Table
        analysis="memory_summary"
        title="Peaks"
        prefix="m."
        height={6}
        hidden={["peak_ns", "frees"]}
        words={{ device: { "": "host" } }}
        linksOf={(row) => summaryLinks(row)}
      />
      <div class="choices">
        <Choices
          label="Memory of"
          name="memory"
          value={memory.id}
          options={withFirst(
            memoriesOf(rows).map((memory) => [memory.id, memoryWords(memory, hasRanks)] as const),
            chosenMemory(rows, undefined)?.id,
          )}
        />
        <a href={timelineAt({ rank: Number(memory.rank), start_ns: memory.peak_ns })}>Its peak on the timeline</a>
      </div>
      <Curve memory={memory} words={words} />
      <RangeForm range={range.value} onRange={chooseRange} />
      <section aria-label="At the peak">
        <Choices label="Group by" name="group" value={group} options={GROUPS} />
        <TopBars
          analysis="memory_peak"
          nouns={PLURALS[group]}
          by="bytes"
          name="name"
          isStack={group === "stack"}
          isPath={group === "module"}
          isDevice={memory.device !== null}
          part={rangeSelection.value}
          query={[...grouped, ...conditions]}
        />
        <Table
          key={group}
          analysis="memory_peak"
          title="Who holds the peak"
          prefix="p."
          height={10}
          query={grouped}
          part={rangeSelection.value}
          where={where}
          hidden={["rank", "device", "peak_bytes"]}
          linksOf={group === "name" ? byName : () => []}
        />
      </section>
      <Table
        analysis="memory_statistics"
        title="By operator"
        prefix="s."
        height={10}
        part={rangeSelection.value}
        where={where}
        hidden={["rank", "device"]}
        linksOf={byName}
      />
      <Table
        analysis="memory_events"
        title="Allocations"
        prefix="e."
        part={rangeSelection.value}
        where={where}
        hidden={["rank", "device", "address", "op_start_ns"]}
        linksOf={allocationLinks}
      />
      <p>
        <a href={hrefOf("tables", { analysis: "memory_timeline" })}>Every change, with what the memory is for</a>
      </p>
    </>
  );
}

/** The options with what is shown unasked in front, as `Choices` has it. */
function withFirst(options: readonly (readonly [string, string])[], first: string | undefined) {
  return [...options].sort((a, b) => Number(b[0] === first) - Number(a[0] === first));
}

function summaryLinks(row: Row): RowLink[] {
  const [memory] = memoriesOf([row]);
  if (!memory) return [];
  return [
    { label: "Show this memory", href: hrefWith({ memory: memory.id }) },
    { label: "Its peak on the timeline", href: timelineAt({ rank: Number(memory.rank), start_ns: memory.peak_ns }) },
  ];
}

function byName(row: Row): RowLink[] {
  // The rest was allocated by nobody who is known.
  if (typeof row.name !== "string" || row.allocations === null) return [];
  return [{ label: "Its calls on the timeline", href: timelineSearch(row.name) }];
}
