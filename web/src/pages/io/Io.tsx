import { runPath, withQuery } from "../../api/paths";
import type { Report, Row } from "../../api/types";
import { AdviceList } from "../../components/AdviceList";
import { Choices } from "../../components/Choices";
import { timelineAt } from "../../components/links";
import { Empty } from "../../components/Notice";
import { RangeForm } from "../../components/RangeForm";
import { TopBars } from "../../components/TopBars";
import { type RowLink, stretchLinks } from "../../components/table/links";
import { Table } from "../../components/table/Table";
import { Words } from "../../components/Words";
import { useAnswer } from "../../state/answer";
import { chooseRange, range, rangeSelection } from "../../state/range";
import { param, selection } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { Bandwidth } from "./Bandwidth";

/** Why there are no files, and what would record them. */
const NO_FILES =
  "No calls on files were recorded. `stepscope record -- python train.py` records those of Python programs with PyTorch, `--io` of all. Traces of DFTracer open here, too: `stepscope view trace.pfw.gz`.";

const METRICS = [
  ["total_ns", "time in calls"],
  ["read_bytes", "bytes read"],
  ["write_bytes", "bytes written"],
  ["count", "calls"],
] as const;

/** What the table of files does not show at first. */
const LESS = ["longest_start_ns", "others", "request_bytes_min", "request_bytes_max"];

/** Of a step, what is no waiting for data. */
const NOT_INPUT = ["start_ns", "comm_ns", "memcpy_ns", "memset_ns", "runtime_ns", "is_complete", "source"];

/** What is read and written, how fast, by which processes, and how long steps wait for data. */
export default function Io() {
  const known = detail.value;
  const by = METRICS.find(([name]) => name === param("by"))?.[0] ?? "total_ns";
  const rank = param("rank") ?? String(known?.run.ranks[0] ?? 0);
  return (
    <>
      <h1>I/O</h1>
      <IoAdvice />
      {known?.has.io ? (
        <>
          <Bandwidth rank={rank} />
          <RangeForm range={range.value} onRange={chooseRange} />
        </>
      ) : (
        <Empty>
          <Words text={NO_FILES} />
        </Empty>
      )}
      <Table
        analysis="io_summary"
        title="Input and output of each step"
        says="What computing hides costs no time; what it does not hide makes the step longer."
        prefix="t."
        height={10}
        isOptional={true}
        hidden={["start_ns", "is_complete", "source"]}
        linksOf={(row) => stretchLinks(row)}
      />
      <Table
        analysis="io_summary"
        title="Layers"
        prefix="l."
        height={8}
        isOptional={true}
        query={[["group_by", "layer"]]}
      />
      {known?.has.io && (
        <>
          <Choices label="Sort by" name="by" value={by} options={METRICS} />
          <TopBars nouns="files" analysis="io_files" by={by} name="file" isDevice={false} part={rangeSelection.value} />
          <Table
            analysis="io_files"
            title="Files"
            order={by === "total_ns" ? "" : by}
            part={rangeSelection.value}
            hidden={LESS}
            linksOf={longestCall}
          />
          <Table
            analysis="io_files"
            title="Processes"
            prefix="w."
            height={8}
            query={[["group_by", "process"]]}
            part={rangeSelection.value}
            hidden={LESS}
            linksOf={longestCall}
          />
        </>
      )}
      <Table analysis="io_workers" title="Workers of a DataLoader" prefix="d." height={8} isOptional={true} />
      <Table
        analysis="io_samples"
        title="Slowest batches"
        prefix="b."
        height={8}
        isOptional={true}
        hidden={["start_ns", "pid"]}
        linksOf={(row) => stretchLinks(row)}
      />
      <Table
        analysis="checkpoints"
        title="Checkpoints"
        prefix="k."
        height={8}
        isOptional={true}
        hidden={["start_ns", "pid"]}
        linksOf={(row) => stretchLinks(row)}
      />
      {(known?.steps.count ?? 0) > 0 && (
        <Table
          analysis="step_breakdown"
          title="How long steps wait for data"
          prefix="i."
          height={10}
          hidden={NOT_INPUT}
          linksOf={(row) => stretchLinks(row)}
        />
      )}
    </>
  );
}

/** What to change about files and the waiting for them. */
function IoAdvice() {
  const path = withQuery(runPath(runId.value, "report"), selection.value);
  const { value: report } = useAnswer<Report>(path, detail.value?.version ?? 0);
  return <AdviceList advice={(report?.advice ?? []).filter(({ rule }) => /^(io|input)\./.test(rule))} />;
}

function longestCall(row: Row): RowLink[] {
  const { rank, longest_start_ns: start_ns, longest_call: name } = row;
  if (typeof rank !== "number" || typeof name !== "string") return [];
  if (typeof start_ns !== "number" && typeof start_ns !== "bigint") return [];
  return [{ label: "Its longest call on the timeline", href: timelineAt({ rank, start_ns, name }) }];
}
