import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Cell, Column, Row } from "../../api/types";
import { exactCell, plainCell, shortCell } from "../../format/cell";
import { formatCount } from "../../format/units";
import { isPrinting } from "../../state/printing";
import { useWidth } from "../charts/width";
import { copyText } from "../clipboard";
import { MiddleCut } from "../MiddleCut";
import { PAGE_ROWS } from "./rows";
import { remPx } from "./text_width";
import { useVirtual } from "./virtual";
import { inRoom, type Widths } from "./widths";
import { type Called, cellWords, hasSentences, isSum, kindWords } from "./words";

/** Height of a row, as in styles/table.css. */
const ROW_PX = 28;
/** Rows on paper: as many as are here at once, since paper does not wait for others. */
const PRINTED = PAGE_ROWS;

/** Where rows come from. */
export interface RowSource {
  /** A row, when it is here. */
  readonly row: (index: number) => Row | undefined;
  /** Says that these rows are on the screen. */
  readonly want: (first: number, last: number) => void;
}

interface Props {
  readonly label: string;
  readonly columns: readonly Column[];
  readonly widths: Widths;
  readonly store: RowSource;
  readonly count: number;
  readonly height: number;
  readonly opened: number | null;
  readonly words?: Called;
  /** True where texts are shown as they are, without the words that results of analyses have for them. */
  readonly isVerbatim?: boolean;
  readonly onOpen: (index: number) => void;
  readonly head: ComponentChildren;
}

/** The rows on the screen, and room for all others above and below. */
export function Body(props: Props) {
  const { label, columns, widths, store, count, height, opened, words, isVerbatim = false, onOpen, head } = props;
  const [scroller, room] = useWidth<HTMLDivElement>();
  const given = inRoom(widths, room / remPx());
  const virtual = useVirtual(scroller, count, ROW_PX);
  const [active, setActive] = useState(0);
  const onPaper = isPrinting.value;
  const seen = virtual.getVirtualItems();
  const items = onPaper ? printedRows(count) : seen;
  const [first, last] = [seen[0], seen[seen.length - 1]];
  const [from, to] = [first?.index, last?.index];
  useEffect(() => {
    if (from !== undefined && to !== undefined) store.want(from, to);
  }, [store, from, to]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another result begins at its top
  useEffect(() => setActive(0), [store]);

  const focus = (index: number) => {
    const next = Math.max(0, Math.min(count - 1, index));
    setActive(next);
    virtual.scrollToIndex(next);
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`[data-row="${next}"]`)?.focus());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!(event.target as HTMLElement).dataset.row) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / ROW_PX) - 2);
    const moves: Record<string, number> = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: count - 1,
    };
    const to = moves[event.key];
    const row = store.row(active);
    if (to !== undefined) focus(to);
    else if (event.key === "Enter" || event.key === " ") onOpen(active);
    else if (event.key === "Escape" && opened !== null) onOpen(opened);
    else if (event.key === "c" && (event.ctrlKey || event.metaKey) && row && getSelection()?.isCollapsed !== false)
      void copyText(columns.map((column) => plainCell(row[column.name])).join("\t"));
    else return;
    event.preventDefault();
  };

  const left = onPaper ? count - items.length : 0;
  const textOf = (column: Column, row: Row) =>
    isVerbatim ? shortCell(column.unit, row[column.name]) : cellWords(column, row, columns, words);
  const padding = (px: number, key: string) =>
    px > 0 &&
    !onPaper && (
      <tr key={key} role="presentation" aria-hidden="true">
        <td role="presentation" colSpan={columns.length} class="room" style={{ height: `${px}px` }} />
      </tr>
    );
  return (
    <div class="table-scroll" ref={scroller} style={{ "--most-height": `${(height + 1) * ROW_PX + 16}px` }}>
      <table
        role="grid"
        aria-label={label}
        aria-rowcount={count + 1}
        aria-colcount={columns.length}
        style={{ "--least-width": `${widths.sum}rem` }}
        onKeyDown={onKeyDown}
      >
        <colgroup>
          {columns.map((column, at) => (
            <col key={column.name} style={{ "--given-width": `${given[at]}rem` }} />
          ))}
          {widths.isChosen && <col />}
        </colgroup>
        {head}
        <tbody>
          {padding(first?.start ?? 0, "above")}
          {items.map(({ index }) => {
            const row = store.row(index);
            return (
              <tr
                key={index}
                data-row={index}
                aria-rowindex={index + 2}
                aria-selected={index === opened}
                class={isSum(row) && !isVerbatim ? "sum" : undefined}
                tabIndex={index === active ? 0 : -1}
                onFocus={() => setActive(index)}
                onClick={() => onOpen(index)}
              >
                {columns.map((column) => (
                  <td
                    key={column.name}
                    class={column.is_right_aligned ? "number" : isPath(column) ? "path" : undefined}
                    title={row && titleOf(column, row[column.name], isVerbatim)}
                  >
                    <bdi>{row ? cut(textOf(column, row), column) : "…"}</bdi>
                  </td>
                ))}
              </tr>
            );
          })}
          {padding(virtual.getTotalSize() - (last?.end ?? 0), "below")}
        </tbody>
      </table>
      {left > 0 && (
        <p class="left-out">
          The first {formatCount(items.length)} rows are printed; {formatCount(left)} are left out.
        </p>
      )}
    </div>
  );
}

/** The rows on paper. */
const printedRows = (count: number) => Array.from({ length: Math.min(count, PRINTED) }, (_, index) => ({ index }));

/** What hovering over a cell says: every digit, and of a text all of it. */
function titleOf(column: Column, value: Cell | undefined, isVerbatim: boolean): string {
  const exact = exactCell(column.unit, value);
  return hasSentences(column) && !isVerbatim ? kindWords(column.name, exact) : exact;
}

const cut = (text: string, column: Column) => (isMiddleCut(column) ? <MiddleCut text={text} /> : text);

/** Whether its texts are names, which begin and end alike as often. */
const isMiddleCut = (column: Column): boolean => column.unit === "text" && !isPath(column) && !hasSentences(column);

/** Whether its texts differ at their ends: paths of files and of modules. */
const isPath = ({ name }: Column): boolean => name === "file" || name === "path";
