import { useEffect, useRef, useState } from "preact/hooks";
import { type Query, runPath } from "../../api/paths";
import type { Column, Envelope, Row } from "../../api/types";
import { formatCount } from "../../format/units";
import { route, selection, setParams, whereWords } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { Definition } from "../Definition";
import { Empty, ErrorNotice, Loading } from "../Notice";
import { Body } from "./Body";
import { type Choices, changesFor, choicesAt, namesOfNothing, nextSort, queryOf, shownColumns } from "./choices";
import { Head } from "./Head";
import type { RowLink } from "./links";
import { RowDetail } from "./RowDetail";
import { useRows } from "./rows";
import { Toolbar } from "./Toolbar";
import { widest } from "./text_width";
import { widthsOf } from "./widths";
import { type Called, cellWords } from "./words";

/** Widths of texts, by their column. */
type Texts = Readonly<Record<string, number>>;

/** Rows beyond this are reached by searching: browsers do not scroll over more. */
const MAX_ROWS = 500_000;

/** Where rows come from that are no analysis of the run that is shown. */
export interface Source {
  readonly path: string;
  readonly query: Query;
  /** Another one makes rows be asked for anew. */
  readonly version: string;
}

export interface TableProps {
  /** The analysis whose rows are shown. */
  readonly analysis: string;
  /** Where its rows come from; the run that is shown, unasked. */
  readonly source?: Source;
  /** What the table is called. */
  readonly title: string;
  /** A sentence that says what is in it. */
  readonly says?: string;
  /** True for a table that is not there while it has no row. */
  readonly isOptional?: boolean;
  /** Parameters of the analysis itself, such as `group_by`. */
  readonly query?: Query;
  /** The order unless a person chose one; none is that of the analysis. */
  readonly order?: string;
  /** Columns that are there but not shown at first. */
  readonly hidden?: readonly string[];
  /** Tells this table's choices in the address from those of others on the page. */
  readonly prefix?: string;
  /** Where a row leads. */
  readonly linksOf?: (row: Row) => RowLink[];
  /** The part of the run, where it is not the one that was chosen for all pages. */
  readonly part?: Query;
  /** Conditions of the page, beside those of the person. */
  readonly where?: readonly string[];
  /** Rows that are seen at once, at most. */
  readonly height?: number;
  /** What values are called on this page. */
  readonly words?: Called;
}

/** A result as a table: sorted, searched, filtered and paged by the server, with every choice in the address. */
export function Table(props: TableProps) {
  const { analysis, title, query = [], order = "", hidden = [], prefix = "", where = [] } = props;
  const version = props.source?.version ?? detail.value?.version ?? 0;
  const choices = choicesAt(route.value, prefix);
  const asked: Query = [
    ...(props.source?.query ?? props.part ?? selection.value),
    ...query,
    ...where.map((condition) => ["where", condition] as const),
    ...queryOf(choices, order),
  ];
  const path = props.source?.path ?? runPath(runId.value, `analyses/${analysis}`);
  const store = useRows(path, asked, version);
  // While the next answer is under way the one before it stays on the screen, so that nothing jumps.
  const last = useRef(store);
  if (store.envelope || store.error) last.current = store;
  const shown = last.current;
  const [opened, setOpened] = useState<number | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another result has other rows
  useEffect(() => setOpened(null), [store]);
  const textWidths = useTextWidths(analysis, props.words);
  const set = (next: Partial<Choices>, replace = false) => setParams(changesFor(next, prefix), { replace });

  const envelope = shown.envelope;
  if (shown.error) {
    const reset = () => {
      set({ sort: "", search: "", where: [], columns: null });
      shown.retry();
    };
    return <ErrorNotice error={shown.error} onRetry={reset} />;
  }
  if (!envelope) return <Loading what={`Computing ${title.toLowerCase()}…`} />;

  if (props.isOptional && envelope.page.total === 0) return null;

  const part = props.source ? "in either run" : whereWords(props.part ?? selection.value);
  const idle = props.source ? [] : namesOfNothing(detail.value);
  const columns = shownColumns(envelope.columns, choices.columns, [...hidden, ...idle]);
  const count = Math.min(envelope.page.matching, MAX_ROWS);
  const openedRow = opened === null ? undefined : shown.row(opened);
  return (
    <section class="table-section" aria-label={title} aria-busy={store !== shown}>
      <div class="table-title">
        <h2>
          {title} <Definition analysis={analysis} columns={envelope.columns} />
        </h2>
        <p class="dim" role="status">
          {rowsWords(envelope.page)}
          {count < envelope.page.matching && `; the first ${formatCount(count)} can be scrolled to`}
        </p>
      </div>
      {props.says && <p class="dim">{props.says}</p>}
      <Toolbar path={path} query={asked} envelope={envelope} choices={choices} shown={columns} onChange={set} />
      {envelope.page.matching === 0 ? (
        <Empty>{envelope.page.total === 0 ? `There is nothing of this ${part}.` : "No row matches."}</Empty>
      ) : (
        <Body
          label={title}
          columns={columns}
          widths={widthsOf(analysis, columns, textWidths(shown.first, columns))}
          store={shown}
          count={count}
          height={props.height ?? 16}
          opened={opened}
          words={props.words}
          onOpen={(index) => setOpened(index === opened ? null : index)}
          head={
            <Head
              columns={columns}
              sort={choices.sort || order}
              widthsFor={analysis}
              onSort={(name) => set({ sort: nextSort(choices.sort || order, name) })}
            />
          }
        />
      )}
      {openedRow && (
        <RowDetail
          columns={envelope.columns}
          row={openedRow}
          links={props.linksOf?.(openedRow) ?? []}
          onFilter={(condition) => set({ where: [...choices.where, condition] })}
          onClose={() => setOpened(null)}
        />
      )}
    </section>
  );
}

/** How wide the widest text of each column is. Another order or search can make one wider, never narrower. */
function useTextWidths(analysis: string, words: Called = {}) {
  const known = useRef({ analysis, rows: null as readonly Row[] | null, columns: "", widths: {} as Texts });
  return (rows: readonly Row[], columns: readonly Column[]): Texts => {
    const names = columns.map(({ name }) => name).join();
    const { current } = known;
    if (current.analysis === analysis && current.rows === rows && current.columns === names) return current.widths;
    const before = current.analysis === analysis ? current.widths : {};
    const texts = columns.filter(({ unit }) => unit === "text");
    const widths = texts.map((column) => {
      const here = widest(rows.map((row) => cellWords(column, row, columns, words)));
      return [column.name, Math.max(here, before[column.name] ?? 0)] as const;
    });
    known.current = { analysis, rows, columns: names, widths: { ...before, ...Object.fromEntries(widths) } };
    return known.current.widths;
  };
}

/** How many rows there are, those that stand for others apart. */
function rowsWords(page: Envelope["page"]): string {
  const [matching, total] = [page.matching - page.matching_sums, page.total - page.total_sums];
  const all = `${formatCount(total)} ${total === 1 ? "row" : "rows"}`;
  const rows = page.matching === page.total ? all : `${formatCount(matching)} of ${all}`;
  const sums = page.matching_sums;
  return sums === 0 ? rows : `${rows}, and ${formatCount(sums)} that ${sums === 1 ? "sums" : "sum"} them up`;
}
