import type { Num } from "../../api/types";
import type { ClassName } from "../../classes";
import { formatCount, formatNs } from "../../format/units";
import { labelEvery, ticks } from "./scale";
import { useWidth } from "./width";

const HEIGHT = 150;
const BELOW = 20;
const LEFT = 64;
const TOP = 8;

interface Range {
  readonly from_ns: number;
  readonly to_ns: number;
  readonly count: Num;
}

interface Props {
  readonly label: string;
  readonly ranges: readonly Range[];
  readonly colour: ClassName;
}

/** How often what happens, by how long it takes: a column a range, all of one width. */
export function Histogram({ label, ranges, colour }: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const most = Math.max(0, ...ranges.map((range) => Number(range.count)));
  const marks = ticks(most, 3).filter(Number.isInteger);
  const top = Math.max(most, marks[marks.length - 1] ?? 0, 1);
  const y = (count: Num) => TOP + (HEIGHT - TOP) * (1 - Number(count) / top);
  const each = Math.max(0, width - LEFT) / Math.max(1, ranges.length);
  const every = labelEvery(ranges.length, width - LEFT, 60);
  const filled = ranges.filter((range) => range.count > 0);
  const said = filled.slice(0, 20).map((range) => `${wordsOf(range)}`);
  return (
    <div ref={box} class="columns-chart">
      <svg
        class="chart"
        role="img"
        aria-label={`${label}: ${said.join("; ")}${filled.length > 20 ? "…" : ""}`}
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
        {ranges.map((range, at) => (
          <g key={range.from_ns}>
            <title>{wordsOf(range)}</title>
            <rect class="hit" fill="transparent" x={LEFT + at * each} y={0} width={each} height={HEIGHT} />
            <rect
              class={`class-${colour}`}
              x={LEFT + at * each + each * 0.05}
              width={each * 0.9}
              y={y(range.count)}
              height={HEIGHT - y(range.count)}
            />
            {at % every === 0 && (
              <text class="tick" x={LEFT + at * each} y={HEIGHT + 15}>
                {formatNs(range.from_ns)}
              </text>
            )}
          </g>
        ))}
      </svg>
    </div>
  );
}

function wordsOf({ from_ns, to_ns, count }: Range): string {
  return `${formatNs(from_ns)} up to ${formatNs(to_ns)}: ${formatCount(count)} ${count === 1 ? "run" : "runs"}`;
}
