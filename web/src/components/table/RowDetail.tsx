import { useEffect, useRef } from "preact/hooks";
import type { Column, Row } from "../../api/types";
import { exactCell, formatCell, plainCell } from "../../format/cell";
import { CopyButton } from "../CopyButton";
import { nameCondition } from "../links";
import { Words } from "../Words";
import type { Condition } from "./choices";
import type { RowLink } from "./links";
import { hasSentences, kindWords } from "./words";

interface Props {
  readonly columns: readonly Column[];
  readonly row: Row;
  readonly links: readonly RowLink[];
  /** Shows only rows with a value of this one; not for rows that come from a query. */
  readonly onFilter?: (condition: Condition) => void;
  /** True where texts are shown as they are. */
  readonly isVerbatim?: boolean;
  readonly onClose: () => void;
}

/** Everything that is known of one row, with every digit, and where it leads. */
export function RowDetail({ columns, row, links, onFilter, isVerbatim = false, onClose }: Props) {
  const aside = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another row is looked at anew
  useEffect(() => aside.current?.scrollIntoView({ block: "nearest" }), [row]);
  const known = columns.filter(
    ({ name }) =>
      row[name] !== null && row[name] !== undefined && (isVerbatim || !(name === "row" && row[name] === "one")),
  );
  const names = known.map((column) => column.name).join("\t");
  const cells = () => `${names}\n${known.map((column) => plainCell(row[column.name])).join("\t")}`;
  return (
    <aside ref={aside} class="row-detail" aria-label="The row that is open">
      <div class="row-detail-head">
        {links.map((link) => (
          <a key={link.label} href={link.href}>
            {link.label}
          </a>
        ))}
        <CopyButton text={cells}>Copy the row</CopyButton>
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
      <dl>
        {known.map((column) => {
          const exact = exactCell(column.unit, row[column.name]);
          const text =
            column.unit === "text" && !isVerbatim
              ? kindWords(column.name, exact)
              : formatCell(column.unit, row[column.name]);
          return (
            <div key={column.name} class={column.unit === "text" ? "wide" : undefined}>
              <dt>{column.label}</dt>
              <dd>
                <span class="pre">{hasSentences(column) && !isVerbatim ? <Words text={exact} /> : text}</span>
                {exact !== text && column.unit !== "text" && <span class="dim exact">{exact}</span>}
                {column.unit === "text" && onFilter && (
                  <button
                    type="button"
                    class="small"
                    aria-label={`only these: rows with this ${column.label}`}
                    onClick={() => onFilter(nameCondition(column.name, plainCell(row[column.name])))}
                  >
                    only these
                  </button>
                )}
              </dd>
            </div>
          );
        })}
      </dl>
    </aside>
  );
}
