import { runPath, withQuery } from "../../api/paths";
import type { Column, Envelope, Row } from "../../api/types";
import { CopyButton } from "../../components/CopyButton";
import { BarList } from "../../components/charts/BarList";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { topWords } from "../../components/TopBars";
import { measureWords } from "../../components/vocabulary";
import { Words } from "../../components/Words";
import { useAnswer } from "../../state/answer";
import { shownRank } from "../../state/rank";
import { hrefWith, param, selection, whereWords } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { Code } from "./Code";
import { lineOf, type SourceAnswer } from "./excerpt";
import { OpenInEditor } from "./OpenInEditor";

/** Lines on each side at first, and at most: the server gives no more. */
const AROUND = 60;
const MOST_AROUND = 2_000;
/** Lines that are named beside the code. */
const HOT = 10;

interface Props {
  readonly file: string;
  readonly by: string;
  readonly isDevice: boolean;
}

/** One file: its lines that cost most, and its code around one of them. */
export function File({ file, by, isDevice }: Props) {
  const version = detail.value?.version ?? 0;
  const asked = [...selection.value, ["where", `file:eq:${file}`], ["sort", by], ["limit", 10_000]] as const;
  const lines = useAnswer<Envelope>(withQuery(runPath(runId.value, "analyses/source_lines"), asked), version);
  const rows = lines.value?.results ?? [];
  const line = lineOf(param("line")) ?? (lines.value ? lineOf(String(rows[0]?.line ?? 1)) : null);
  const around = param("around") === "all" ? MOST_AROUND : AROUND;
  const place = withQuery(runPath(runId.value, "source"), [
    ["file", file],
    ["line", line],
    ["around", around],
    ["of_rank", shownRank.value],
  ]);
  const excerpt = useAnswer<SourceAnswer>(line === null ? null : place, version);
  const column = lines.value?.columns.find((column) => column.name === by);
  if (lines.state === "failed") return <ErrorNotice error={lines.error} />;
  if (!lines.value || !column || line === null) return <Loading />;
  const answer = excerpt.state === "ready" ? excerpt.value : undefined;
  const shown = answer?.lines ? answer : undefined;
  // One name for one file: where it is stays known while other lines of it are read.
  const last = excerpt.value?.file === file ? excerpt.value : undefined;
  const path = last?.lines ? last.editor_path : file;
  return (
    <section aria-label="File" aria-busy={lines.state === "loading"}>
      <h2 class="source-file">
        <code>{file}</code>
      </h2>
      <HotLines rows={rows} column={column} isDevice={isDevice} total={lines.value.page.matching} />
      <p class="choices">
        <CopyButton text={() => `${file}:${line}`}>Copy the place</CopyButton>
        {(last || excerpt.state === "failed") && <OpenInEditor path={path} line={line} />}
        {shown && shown.lines.length > AROUND && (
          <a href={hrefWith({ around: around === AROUND ? "all" : null })}>
            {around === AROUND ? "Show more of the file" : "Show less of the file"}
          </a>
        )}
      </p>
      {excerpt.state === "failed" && (
        <>
          <ErrorNotice error={excerpt.error} />
          <p class="dim">What its lines cost is known all the same: see the table below.</p>
        </>
      )}
      {answer?.lines === null && (
        <Empty>
          <Words text={answer.hint} /> What its lines cost is in the table below.
        </Empty>
      )}
      {excerpt.state === "loading" && <Loading what="Reading the file…" />}
      {shown && shown.lines.length === 0 && <Empty>The file has no line {line}: it has changed since the run.</Empty>}
      {shown && shown.lines.length > 0 && (
        <Code excerpt={shown} rows={rows} by={by} byWords={measureWords(column)} unit={column.unit} line={line} />
      )}
    </section>
  );
}

interface HotProps {
  readonly rows: readonly Row[];
  readonly column: Column;
  readonly isDevice: boolean;
  readonly total: number;
}

function HotLines({ rows, column, isDevice, total }: HotProps) {
  const hot = rows.filter((row) => Number(row[column.name] ?? 0) > 0).slice(0, HOT);
  if (hot.length === 0) return <Empty>Nothing is counted for this file {whereWords(selection.value)}.</Empty>;
  const label = topWords(hot.length, total, "lines", measureWords(column));
  return (
    <figure>
      <figcaption>{label}</figcaption>
      <BarList
        label={label}
        unit={column.unit}
        isDevice={isDevice}
        bars={hot.map((row) => ({
          name: `${row.line ?? "–"}: ${row.function ?? ""}`,
          value: row[column.name] ?? null,
          href: row.line === null ? undefined : hrefWith({ line: String(row.line) }),
        }))}
      />
    </figure>
  );
}
