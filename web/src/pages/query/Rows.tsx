import { useMemo, useState } from "preact/hooks";
import type { Row } from "../../api/types";
import { Body } from "../../components/table/Body";
import { nextSort } from "../../components/table/choices";
import { Head } from "../../components/table/Head";
import { RowDetail } from "../../components/table/RowDetail";
import { setParams } from "../../state/route";
import { type AnswerTable, widthsFor } from "./answer_table";

interface Props {
  readonly table: AnswerTable;
  /** Its rows in their order. */
  readonly rows: readonly Row[];
  readonly sort: string;
}

/** Rows on the screen at once, at most. */
const HEIGHT = 22;

/** The rows of a result. */
export function Rows({ table, rows, sort }: Props) {
  const [opened, setOpened] = useState<Row | null>(null);
  const source = useMemo(() => ({ row: (index: number) => rows[index], want: () => {} }), [rows]);
  const widths = useMemo(() => widthsFor(table), [table]);
  const index = opened === null ? -1 : rows.indexOf(opened);
  return (
    <>
      <Body
        label="Result"
        columns={table.columns}
        widths={widths}
        store={source}
        count={rows.length}
        height={HEIGHT}
        opened={index < 0 ? null : index}
        isVerbatim={true}
        onOpen={(next) => setOpened(next === index ? null : (rows[next] ?? null))}
        head={
          <Head
            columns={table.columns}
            sort={sort}
            onSort={(name) => setParams({ sort: nextSort(sort, name) || null })}
          />
        }
      />
      {opened && index >= 0 && (
        <RowDetail columns={table.columns} row={opened} links={[]} isVerbatim={true} onClose={() => setOpened(null)} />
      )}
    </>
  );
}
