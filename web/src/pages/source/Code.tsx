import { useEffect, useRef } from "preact/hooks";
import type { Row, Unit } from "../../api/types";
import { PlainHead } from "../../components/table/PlainHead";
import { Value } from "../../components/Value";
import { hrefWith } from "../../state/route";
import { type CodeLine, codeLines, type Excerpt } from "./excerpt";

interface Props {
  readonly excerpt: Excerpt;
  readonly rows: readonly Row[];
  /** The column that stands beside the lines. */
  readonly by: string;
  readonly byWords: string;
  readonly unit: Unit;
  /** The line that is looked at. */
  readonly line: number;
}

/** Lines of a file with what they cost beside them. */
export function Code({ excerpt, rows, by, byWords, unit, line }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const lines = codeLines(excerpt, rows);
  const most = Math.max(0, ...rows.map((row) => Number(row[by] ?? 0)));
  // biome-ignore lint/correctness/useExhaustiveDependencies: other code is scrolled to its line anew
  useEffect(() => {
    const box = scroller.current;
    const row = box?.querySelector<HTMLElement>(`[data-line="${line}"]`);
    if (box && row) box.scrollTop = row.offsetTop - box.clientHeight / 3;
  }, [excerpt, line]);
  return (
    <div class="code-scroll" ref={scroller}>
      <table class="code" aria-label={`Lines of ${excerpt.file}`}>
        <PlainHead columns={[{ number: "Line" }, { number: byWords }, "Code"]} />
        <tbody>
          {lines.map((code) => (
            <Line
              key={code.number}
              file={excerpt.file}
              code={code}
              by={by}
              unit={unit}
              most={most}
              isHere={code.number === line}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface LineProps {
  readonly file: string;
  readonly code: CodeLine;
  readonly by: string;
  readonly unit: Unit;
  readonly most: number;
  readonly isHere: boolean;
}

function Line({ file, code, by, unit, most, isHere }: LineProps) {
  const [first] = code.rows;
  const share = first && most > 0 ? Number(first[by] ?? 0) / most : 0;
  return (
    <tr data-line={code.number} class={isHere ? "here" : undefined} aria-current={isHere ? "true" : undefined}>
      <td class="number">
        <a href={hrefWith({ file, line: String(code.number) })}>{code.number}</a>
      </td>
      <td class="number gutter">
        {share > 0 && (
          <svg class="gutter-bar" width="100%" height="100%" aria-hidden="true" focusable="false">
            <rect width={`${share * 100}%`} height="100%" />
          </svg>
        )}
        {code.rows.map((row, at) => (
          <span key={at} title={typeof row.function === "string" ? row.function : undefined}>
            <Value unit={unit} value={row[by]} />
            {at < code.rows.length - 1 && <br />}
          </span>
        ))}
      </td>
      <td>
        <code class="pre">{code.text}</code>
      </td>
    </tr>
  );
}
