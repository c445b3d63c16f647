import type { Num } from "../../api/types";
import { formatCount, formatNs } from "../../format/units";
import { hatchOf } from "./Patterns";
import type { PairRange } from "./ranges";
import { labelEvery, ticks } from "./scale";
import { useWidth } from "./width";

const HEIGHT = 170;
const BELOW = 20;
const LEFT = 64;
const TOP = 8;
/** Room for what stands below a range. */
const LABEL = 50;

interface Props {
  readonly label: string;
  readonly ranges: readonly PairRange[];
  /** What the two are called. */
  readonly names: readonly [string, string];
  /** What is counted: one and several of it. */
  readonly nouns: readonly [string, string];
}

/** Two histograms on each other: the first filled, the second an outline with stripes. */
export function Overlaid({ label, ranges, names, nouns }: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const most = Math.max(0, ...ranges.map((range) => Math.max(Number(range.a), Number(range.b))));
  const marks = ticks(most, 3).filter(Number.isInteger);
  const top = Math.max(most, marks[marks.length - 1] ?? 0, 1);
  const y = (count: Num) => TOP + (HEIGHT - TOP) * (1 - Number(count) / top);
  const each = Math.max(0, width - LEFT) / Math.max(1, ranges.length);
  const every = labelEvery(ranges.length, width - LEFT, 64);
  const words = ({ from_ns, to_ns, a, b }: PairRange) => {
    const counted = (count: Num) => `${formatCount(count)} ${count === 1 ? nouns[0] : nouns[1]}`;
    return `${formatNs(from_ns)} up to ${formatNs(to_ns)}: ${counted(a)} before, ${counted(b)} now`;
  };
  const filled = ranges.filter(({ a, b }) => a > 0 || b > 0);
  const said = filled.slice(0, 20).map(words).join("; ");
  return (
    <div ref={box} class="columns-chart">
      <ul class="legend">
        <li>
          <Key side="a" /> before: {names[0]}
        </li>
        <li>
          <Key side="b" /> now: {names[1]}
        </li>
      </ul>
      <svg
        class="chart"
        role="img"
        aria-label={`${label}: ${said}${filled.length > 20 ? "…" : ""}`}
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
        {ranges.map((range, at) => {
          const x = LEFT + at * each;
          const wide = Math.max(1, each * 0.92);
          return (
            <g key={range.from_ns}>
              <title>{words(range)}</title>
              <rect fill="transparent" x={x} y={0} width={each} height={HEIGHT} />
              {range.a > 0 && <rect class="side-a" x={x} width={wide} y={y(range.a)} height={HEIGHT - y(range.a)} />}
              {range.b > 0 && (
                <>
                  <rect fill={hatchOf("rising")} x={x} width={wide} y={y(range.b)} height={HEIGHT - y(range.b)} />
                  <rect class="side-b" x={x} width={wide} y={y(range.b)} height={HEIGHT - y(range.b)} />
                </>
              )}
              {at % every === 0 && x + LABEL < width && (
                <text class="tick" x={x} y={HEIGHT + 15}>
                  {formatNs(range.from_ns)}
                </text>
              )}
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function Key({ side }: { side: "a" | "b" }) {
  return (
    <svg class="swatch" width="14" height="14" aria-hidden="true" focusable="false">
      {side === "b" && <rect x="1" y="1" width="12" height="12" fill={hatchOf("rising")} />}
      <rect class={`side-${side}`} x="1" y="1" width="12" height="12" />
    </svg>
  );
}
