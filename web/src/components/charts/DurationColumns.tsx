import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Num } from "../../api/types";
import { formatCount, formatNs } from "../../format/units";
import { sliderOf } from "./cursor";
import { Pointed } from "./Pointed";
import { axisOf, type Stretch } from "./ranges";
import { ticks } from "./scale";
import { useWidth } from "./width";

const HEIGHT = 160;
const BELOW = 20;
const LEFT = 64;
const TOP = 8;
/** Room for what stands below a range. */
const LABEL = 64;

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

/** A chart with a column for each range of durations: its axes, and what a column says, by mouse, touch and keys. */
export function DurationColumns<R extends Stretch>(props: Props<R>) {
  const { label, ranges, most, counted, children } = props;
  const [box, width] = useWidth<HTMLDivElement>();
  const [pointed, point] = useState<number | null>(null);
  const highest = Math.max(0, ...ranges.map(most));
  const marks = ticks(highest, 3).filter(Number.isInteger);
  const top = Math.max(highest, marks[marks.length - 1] ?? 0, 1);
  const y = (count: Num) => TOP + (HEIGHT - TOP) * (1 - Number(count) / top);
  const tall = (count: Num) => ({ y: y(count), height: HEIGHT - y(count) });
  const axis = axisOf(ranges);
  const x = (ns: number) => LEFT + Math.max(0, width - LEFT) * axis.at(ns);
  const words = (range: R) => `${formatNs(range.from_ns)} up to ${formatNs(range.to_ns)}: ${counted(range)}`;
  const labelled = withRoom(ranges, x, width);
  const at = pointed !== null && pointed < ranges.length ? pointed : null;
  const wordsAt = (at: number) => (ranges[at] ? words(ranges[at]) : "");
  const [only, ...others] = ranges;
  if (only && others.length === 0) return <p>All in one range: {words(only)}.</p>;
  return (
    <div ref={box} class="columns-chart">
      <div {...sliderOf(ranges.length, label, at, wordsAt, point)}>
        <svg class="chart" aria-hidden="true" width={width} height={HEIGHT + BELOW}>
          {marks.map((count) => (
            <g key={count}>
              <line class="grid" x1={LEFT} x2={width} y1={y(count)} y2={y(count)} />
              <text class="tick" x={LEFT - 6} y={y(count) + 4} text-anchor="end">
                {formatCount(count)}
              </text>
            </g>
          ))}
          {ranges.map((range, nth) => {
            const [left, right] = [x(range.from_ns), x(range.to_ns)];
            // A gap between columns, as far as there is room for one.
            const gap = Math.min(1.5, (right - left) * 0.05);
            return (
              <g
                key={range.from_ns}
                class={nth === at ? "pointed-at" : undefined}
                onPointerEnter={() => point(nth)}
                onClick={() => point(nth)}
              >
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
      </div>
      {axis.isLogarithmic && <p class="dim">The axis is logarithmic: ranges grow with the durations that they hold.</p>}
      <Pointed words={at === null ? null : wordsAt(at)} hint="Point at a column, or use the arrow keys, to read it." />
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
