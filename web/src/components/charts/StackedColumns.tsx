import { useState } from "preact/hooks";
import type { Num } from "../../api/types";
import { partLook } from "../../classes";
import { formatNs } from "../../format/units";
import { fillOf } from "./Patterns";
import { Pointed, usePointed } from "./Pointed";
import { labelEvery, ticks } from "./scale";
import { useWidth } from "./width";

/** One column: its parts are stacked in order. */
export interface Column {
  readonly key: string;
  /** What stands below it. */
  readonly label: string;
  /** What it is, in words. */
  readonly title: string;
  readonly total_ns: Num;
  readonly parts: readonly { readonly part: string; readonly ns: Num }[];
  readonly isChosen: boolean;
  /** False when recording cut it: it is drawn lighter. */
  readonly isComplete: boolean;
}

interface Props {
  readonly label: string;
  readonly columns: readonly Column[];
  readonly onChoose: (column: Column) => void;
}

const HEIGHT = 220;
const BELOW = 20;
const LEFT = 64;
const TOP = 8;
/** A few columns are not as wide as there is room. */
const WIDEST = 96;

/** Columns of stacked parts, of which one can be chosen with the mouse or the keyboard. */
export function StackedColumns({ label, columns, onChoose }: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const [active, setActive] = useState(0);
  const pointed = usePointed();
  const most = Math.max(0, ...columns.map((column) => Number(column.total_ns)));
  const marks = ticks(most, 4);
  const top = marks[marks.length - 1] || 1;
  const y = (ns: number) => TOP + (HEIGHT - TOP) * (1 - ns / top);
  const each = Math.min(Math.max(0, width - LEFT) / Math.max(1, columns.length), WIDEST);
  const every = labelEvery(columns.length, width - LEFT, 44);

  const point = (column: Column) => {
    pointed.value = wordsOf(column).replace(":", " ·").replaceAll("\n", ", ");
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const at = Math.min(active, columns.length - 1);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: columns.length - 1 }[event.key];
    const column = columns[at];
    if (to !== undefined) {
      const next = Math.max(0, Math.min(columns.length - 1, to));
      setActive(next);
      box.current?.querySelectorAll<SVGGElement>("[role=button]")[next]?.focus();
    } else if ((event.key === "Enter" || event.key === " ") && column) onChoose(column);
    else return;
    event.preventDefault();
  };

  return (
    <div ref={box} class="columns-chart">
      <svg class="chart" width={width} height={HEIGHT + BELOW} onKeyDown={onKeyDown}>
        <title>{label}</title>
        {marks.map((ns) => (
          <g key={ns} aria-hidden="true">
            <line class="grid" x1={LEFT} x2={width} y1={y(ns)} y2={y(ns)} />
            <text class="tick" x={LEFT - 6} y={y(ns) + 4} text-anchor="end">
              {formatNs(ns)}
            </text>
          </g>
        ))}
        {columns.map((column, at) => {
          const x = LEFT + at * each;
          let below = 0;
          return (
            <g
              key={column.key}
              role="button"
              tabindex={at === Math.min(active, columns.length - 1) ? 0 : -1}
              aria-label={wordsOf(column)}
              aria-pressed={column.isChosen}
              class={`column${column.isChosen ? " chosen" : ""}${column.isComplete ? "" : " cut"}`}
              onClick={() => onChoose(column)}
              onFocus={() => {
                setActive(at);
                point(column);
              }}
              onPointerEnter={() => point(column)}
            >
              <title>{wordsOf(column)}</title>
              <rect class="hit" x={x} y={0} width={each} height={HEIGHT} />
              {column.parts.map(({ part, ns }) => {
                const look = partLook(part);
                const from = below;
                below += Number(ns);
                return (
                  <rect
                    key={part}
                    x={x + each * 0.08}
                    y={y(below)}
                    width={each * 0.84}
                    height={Math.max(0, y(from) - y(below))}
                    fill={fillOf(look.colour, look.texture)}
                  />
                );
              })}
              {at % every === 0 && (
                <text class="tick" x={x + each / 2} y={HEIGHT + 15} text-anchor="middle">
                  {column.label}
                </text>
              )}
            </g>
          );
        })}
      </svg>
      <Pointed words={pointed} hint="Point at a column to see its parts." />
    </div>
  );
}

function wordsOf(column: Column): string {
  const parts = column.parts.filter((part) => part.ns > 0);
  const words = parts.map(({ part, ns }) => `${partLook(part).words} ${formatNs(ns)}`);
  return `${column.title}: ${formatNs(column.total_ns)}${column.isComplete ? "" : ", cut by recording"}\n${words.join("\n")}`;
}
