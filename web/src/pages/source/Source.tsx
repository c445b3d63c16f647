import { runPath, withQuery } from "../../api/paths";
import type { Envelope, Row } from "../../api/types";
import { Choices } from "../../components/Choices";
import { BarList } from "../../components/charts/BarList";
import { Definition } from "../../components/Definition";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { topWords } from "../../components/TopBars";
import { codeLinks } from "../../components/table/links";
import { Table } from "../../components/table/Table";
import { measureWords } from "../../components/vocabulary";
import { useAnswer } from "../../state/answer";
import { hrefWith, param, selection, whereWords } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { File } from "./File";

const METRICS = [
  ["device_total_ns", "device time of what they call"],
  ["device_self_ns", "device time of what they call directly"],
  ["host_total_ns", "host time of what they call"],
  ["host_self_ns", "host time of what they call directly"],
  ["count", "calls"],
] as const;
const SAMPLES = [
  ["samples", "samples of stacks that have them"],
  ["self_samples", "samples of stacks of which they are the innermost line"],
] as const;
/** What a row without a file is. */
const NO_STACK = "without a call stack";
/** Files that are named. */
const FILES = 12;

/** Which lines of the program take the time, with their code. */
export default function Source() {
  const has = detail.value?.has;
  const times = has?.devices ? METRICS : METRICS.filter(([name]) => !name.startsWith("device"));
  // Samples are there without anybody's asking, stacks of operators only when they were asked for: these come first then.
  const known = has?.stacks || has?.python ? times : [];
  const samples = has?.stack_samples ? SAMPLES : [];
  const metrics = has?.stacks ? [...known, ...samples] : [...samples, ...known];
  const by = metrics.find(([name]) => name === param("by"))?.[0] ?? metrics[0]?.[0] ?? "host_total_ns";
  const isDevice = by.startsWith("device");
  const asked = [...selection.value, ["group_by", "file"], ["sort", by], ["limit", FILES]] as const;
  const path = withQuery(runPath(runId.value, "analyses/source_lines"), asked);
  const files = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  if (files.state === "failed") return <ErrorNotice error={files.error} />;
  if (!files.value) return <Loading what="Computing lines…" />;
  const rows = files.value.results;
  // Where only samples name lines, the calls of operators are all without one.
  const isTimed = has?.stacks || rows.some(({ file, count, host_total_ns }) => file && (count || host_total_ns));
  const options = metrics.filter(([name]) => isTimed || name.endsWith("samples") || name === by);
  const hidden = METRICS.map(([name]) => name).filter((name) => !options.some(([option]) => option === name));
  // What is no file, such as `<string>`, has no code to show.
  const first = (rows.find(({ file }) => typeof file === "string" && !file.startsWith("<")) ?? rows[0])?.file;
  const file = param("file") ?? (typeof first === "string" ? first : null);
  const column = files.value.columns.find((column) => column.name === by);
  const label = topWords(rows.length, files.value.page.matching, "files", column ? measureWords(column) : by);
  return (
    <>
      <h1>Source</h1>
      <div class="choices">
        <Choices label="Sort by" name="by" value={by} options={options} />
      </div>
      <section aria-label="Files">
        <h2>
          Files <Definition analysis="source_lines" />
        </h2>
        <figure>
          <figcaption>{label}</figcaption>
          <BarList
            label={label}
            unit={column?.unit ?? "ns"}
            isDevice={isDevice}
            bars={rows.map((row) => barOf(row, by))}
            isPath={true}
          />
        </figure>
      </section>
      {file === null ? (
        <Empty>No operator and no sample {whereWords(selection.value)} has a call stack.</Empty>
      ) : (
        <File file={file} by={by} isDevice={isDevice} />
      )}
      <Table
        analysis="source_lines"
        title="All lines"
        prefix="l."
        order={by}
        hidden={[...hidden, ...(has?.stack_samples ? [] : SAMPLES.map(([name]) => name))]}
        words={{ file: { "": NO_STACK } }}
        linksOf={codeLinks}
      />
    </>
  );
}

function barOf(row: Row, by: string) {
  if (typeof row.file !== "string") return { name: NO_STACK, value: row[by] ?? null };
  return { name: row.file, value: row[by] ?? null, href: hrefWith({ file: row.file, line: null, around: null }) };
}
