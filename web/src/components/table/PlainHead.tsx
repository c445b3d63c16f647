/** A column of a small table: of texts, of numbers, or one without a name. */
export type PlainColumn = string | { readonly number: string; readonly title?: string } | null;

/** The head of a table that is neither sorted nor scrolled. */
export function PlainHead({ columns }: { columns: readonly PlainColumn[] }) {
  return (
    <thead>
      <tr>
        {columns.map((column, at) =>
          column === null ? (
            <td key={at} />
          ) : typeof column === "string" ? (
            <th key={at} scope="col">
              {column}
            </th>
          ) : (
            <th key={at} scope="col" class="number" title={column.title}>
              {column.number}
            </th>
          ),
        )}
      </tr>
    </thead>
  );
}
