import { useMemo } from "preact/hooks";
import { withToken } from "../../api/client";
import { runPath, withQuery } from "../../api/paths";
import { Choices } from "../../components/Choices";
import { CopyButton } from "../../components/CopyButton";
import { Empty, ErrorNotice } from "../../components/Notice";
import { plainCell } from "../../format/cell";
import { formatCount } from "../../format/units";
import { runId } from "../../state/runs";
import { type Asked, LIMITS, SHOWN_AS } from "./address";
import { type AnswerTable, sorted } from "./answer_table";
import { Plot } from "./Plot";
import { Rows } from "./Rows";
import type { Result } from "./run_query";

/** The most rows that are copied at once; more is a file. */
const MAX_COPIED = 10_000;

interface Props {
  readonly result: Result;
  readonly asked: Asked;
  readonly isMoreComing: boolean;
  readonly onMore: () => void;
}

/** What a query gave: how many rows, the way to all of them, and the rows as a table or as a picture. */
export function ResultView({ result, asked, isMoreComing, onMore }: Props) {
  const { table, isComplete, rest, why } = result;
  const rows = useMemo(() => sorted(table, asked.sort), [table, asked.sort]);
  const fileOf = (format: string) =>
    withToken(
      withQuery(runPath(runId.value, "query/file"), [
        ["sql", asked.sql],
        ["format", format],
      ]),
    );
  return (
    <>
      <div class="toolbar">
        <p role="status">{rowsWords(rows.length, isComplete)}</p>
        {rest !== undefined && (
          <button type="button" disabled={isMoreComing} onClick={onMore}>
            {isMoreComing ? "More rows are coming…" : `Show ${formatCount(asked.limit)} more`}
          </button>
        )}
        <span>
          {isComplete ? "Save as " : "Save all of them as "}
          <a href={fileOf("csv")} download="">
            CSV
          </a>{" "}
          or{" "}
          <a href={fileOf("parquet")} download="">
            Parquet
          </a>
        </span>
        {rows.length > 0 && rows.length <= MAX_COPIED && (
          <CopyButton text={() => textOf({ ...table, rows })}>Copy as TSV</CopyButton>
        )}
      </div>
      <div class="choices">
        <Choices label="Show as" name="plot" value={asked.shownAs} options={SHOWN_AS} />
        <Choices
          label="Rows at once"
          name="limit"
          value={String(asked.limit)}
          options={LIMITS.map((limit) => [String(limit), formatCount(limit)] as const)}
        />
      </div>
      {why && <ErrorNotice error={why} />}
      {rows.length === 0 && <Empty>The result has no rows.</Empty>}
      {rows.length > 0 && asked.shownAs === "table" && <Rows table={table} rows={rows} sort={asked.sort} />}
      {rows.length > 0 && asked.shownAs !== "table" && (
        <Plot kind={asked.shownAs} table={table} rows={rows} chosen={asked} />
      )}
    </>
  );
}

function rowsWords(count: number, isComplete: boolean): string {
  const rows = `${formatCount(count)} ${count === 1 ? "row" : "rows"}`;
  return isComplete ? rows : `The first ${rows}; there are more.`;
}

function textOf({ columns, rows }: AnswerTable): string {
  const line = (cells: readonly string[]) => cells.map((cell) => cell.replace(/[\t\r\n]/g, " ")).join("\t");
  const names = line(columns.map((column) => column.label));
  return [names, ...rows.map((row) => line(columns.map(({ name }) => plainCell(row[name]))))].join("\n");
}
