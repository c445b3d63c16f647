import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Num } from "../../api/types";
import { formatCount, formatNs } from "../../format/units";
import { axisOf, type Stretch } from "./ranges";
import { ticks } from "./scale";
import { useWidth } from "./width";

const HEIGHT = 160;
const BELOW = 20;
const LEFT = 64;
const TOP = 8;
/** Room for what stands below a range. */
const LABEL = 64;
/** No more ranges than this are read out. */
const SAID = 20;

/** Where the column of one range is drawn: as a rectangle of this width, as high as a count. */
export interface Place {
  readonly x: number;
  readonly width: number;
  /** `y` and `height` of a rectangle for a count. */
  readonly tall: (count: Num) => { readonly y: number; readonly height: number };
}

interface Props<R> {
  readonly label: string;
  readonly ranges: readonly R[];
  /** The largest count of a range; 0 for a range in which there is nothing. */
  readonly most: (range: R) => number;
  /** How many of what lie in a range. */
  readonly counted: (range: R) => string;
  /** What is drawn of a range. */
  readonly children: (range: R, place: Place) => ComponentChildren;
}

/** A chart with a column for each range of durations: its axes, what a column says, and who cannot see it is told. */
export function DurationColumns<R extends Stretch>(props: Props<R>) {
  const { label, ranges, most, counted, children } = props;
  const [box, width] = useWidth<HTMLDivElement>();
  const [pointed, point] = useState("");
  const highest = Math.max(0, ...ranges.map(most));
  const marks = ticks(highest, 3).filter(Number.isInteger);
  const top = Math.max(highest, marks[marks.length - 1] ?? 0, 1);
  const y = (count: Num) => TOP + (HEIGHT - TOP) * (1 - Number(count) / top);
  const tall = (count: Num) => ({ y: y(count), height: HEIGHT - y(count) });
  const axis = axisOf(ranges);
  const x = (ns: number) => LEFT + Math.max(0, width - LEFT) * axis.at(ns);
  const words = (range: R) => `${formatNs(range.from_ns)} up to ${formatNs(range.to_ns)}: ${counted(range)}`;
  const filled = ranges.filter((range) => most(range) > 0);
  const labelled = withRoom(ranges, x, width);
  const said = filled.slice(0, SAID).map(words).join("; ");
  return (
    <div ref={box} class="columns-chart">
      <svg
        class="chart"
        role="img"
        aria-label={`${label}: ${said}${filled.length > SAID ? "…" : ""}`}
        width={width}
        height={HEIGHT + BELOW}
      >
        {marks.map((count) => (
          <g key={count}>
            <line class="grid" x1={LEFT} x2={width} y1={y(count)} y2={y(count)} />
            <text class="tick" x={LEFT - 6} y={y(count) + 4} text-anchor="end">
              {formatCount(count)}
            </text>
          </g>
        ))}
        {ranges.map((range) => {
          const [left, right] = [x(range.from_ns), x(range.to_ns)];
          // A gap between columns, as far as there is room for one.
          const gap = Math.min(1.5, (right - left) * 0.05);
          return (
            <g key={range.from_ns} onPointerEnter={() => point(words(range))} onClick={() => point(words(range))}>
              <title>{words(range)}</title>
              <rect fill="transparent" x={left} y={0} width={right - left} height={HEIGHT} />
              {children(range, { x: left + gap, width: Math.max(1, right - left - 2 * gap), tall })}
              {labelled.has(range) && (
                <text class="tick" x={left} y={HEIGHT + 15}>
                  {formatNs(range.from_ns)}
                </text>
              )}
            </g>
          );
        })}
      </svg>
      <p class="dim">
        {axis.isLogarithmic && "The axis is logarithmic: ranges grow with the durations that they hold. "}
        <span role="status">{pointed}</span>
      </p>
    </div>
  );
}

/** The ranges at whose start a label has room. */
function withRoom<R extends Stretch>(ranges: readonly R[], x: (ns: number) => number, width: number): Set<R> {
  let free = Number.NEGATIVE_INFINITY;
  return new Set(
    ranges.filter(({ from_ns }) => {
      const left = x(from_ns);
      if (left < free || left + LABEL > width) return false;
      free = left + LABEL;
      return true;
    }),
  );
}
