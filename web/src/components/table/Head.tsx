import type { Column } from "../../api/types";
import { unitWords } from "../../format/cell";
import { ariaSort } from "./choices";
import { chooseWidths } from "./widths";
import { docWords } from "./words";

interface Props {
  readonly columns: readonly Column[];
  readonly sort: string;
  readonly onSort: (column: string) => void;
  /** What the browser remembers widths by; without it, columns keep theirs. */
  readonly widthsFor?: string;
}

/** By how much a key makes a column wider, in rem. */
const STEP = 1;

/** The head of a table; a click on a column's name changes the order, and dragging its edge the width. */
export function Head({ columns, sort, onSort, widthsFor }: Props) {
  const onKeyDown = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? STEP : event.key === "ArrowLeft" ? -STEP : 0;
    if (by === 0 || !event.shiftKey || widthsFor === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const { name, widths } = measured(event.currentTarget as HTMLElement);
    chooseWidths(widthsFor, { ...widths, [name]: (widths[name] ?? 0) + by });
  };
  return (
    <thead>
      <tr aria-rowindex={1}>
        {columns.map((column) => {
          const order = ariaSort(sort, column);
          return (
            <th
              key={column.name}
              scope="col"
              aria-sort={order}
              data-column={column.name}
              class={column.is_right_aligned ? "number" : undefined}
              title={`${column.label}: ${unitWords(column)}. ${docWords(column)}`}
            >
              <button
                type="button"
                aria-keyshortcuts={widthsFor && "Shift+ArrowLeft Shift+ArrowRight"}
                onClick={() => onSort(column.name)}
                onKeyDown={onKeyDown}
              >
                <span class="label">{column.label}</span>
                <span aria-hidden="true">{order === "ascending" ? " ▲" : order === "descending" ? " ▼" : ""}</span>
              </button>
              {widthsFor !== undefined && <Edge table={widthsFor} />}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

/** The edge of a column: dragging it changes the width, a double click gives all columns those that they had. */
function Edge({ table }: { table: string }) {
  const onPointerDown = (event: PointerEvent) => {
    const edge = event.currentTarget as HTMLElement;
    edge.setPointerCapture(event.pointerId);
    const { name, widths, rem } = measured(edge);
    const from = event.clientX;
    const stop = new AbortController();
    const { signal } = stop;
    const move = (event: PointerEvent) =>
      chooseWidths(table, { ...widths, [name]: (widths[name] ?? 0) + (event.clientX - from) / rem });
    edge.addEventListener("pointermove", move, { signal });
    for (const end of ["pointerup", "pointercancel"]) edge.addEventListener(end, () => stop.abort(), { signal });
  };
  return (
    <span
      class="edge"
      aria-hidden="true"
      onPointerDown={onPointerDown}
      onDblClick={() => chooseWidths(table, null)}
      title="Drag it for another width; a double click gives all columns theirs back"
    />
  );
}

/** How wide the columns are now, in rem, and which of them an element belongs to: those beside it stay as they are. */
function measured(inside: HTMLElement) {
  const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  const heads = [...(inside.closest("tr")?.querySelectorAll<HTMLElement>("th") ?? [])];
  const widths = Object.fromEntries(
    heads.map((head) => [head.dataset.column ?? "", head.getBoundingClientRect().width / rem]),
  );
  return { rem, widths, name: inside.closest("th")?.dataset.column ?? "" };
}
