import type { Column } from "../../api/types";
import { unitWords } from "../../format/cell";
import { ariaSort } from "./choices";

interface Props {
  readonly columns: readonly Column[];
  readonly sort: string;
  readonly onSort: (column: string) => void;
}

/** The head of a table; a click on a column's name changes the order. */
export function Head({ columns, sort, onSort }: Props) {
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
              class={column.is_right_aligned ? "number" : undefined}
              title={`${column.name}: ${unitWords(column)}. ${column.doc.replaceAll("`", "")}`}
            >
              <button type="button" onClick={() => onSort(column.name)}>
                <span class="label">{column.label}</span>
                <span aria-hidden="true">{order === "ascending" ? " ▲" : order === "descending" ? " ▼" : ""}</span>
              </button>
            </th>
          );
        })}
      </tr>
    </thead>
  );
}
