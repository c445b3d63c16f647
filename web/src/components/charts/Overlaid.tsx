import type { Num } from "../../api/types";
import { formatCount } from "../../format/units";
import { DurationColumns } from "./DurationColumns";
import { hatchOf } from "./Patterns";
import type { PairRange } from "./ranges";

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
  const noun = (count: Num) => `${formatCount(count)} ${Number(count) === 1 ? nouns[0] : nouns[1]}`;
  return (
    <>
      <ul class="legend">
        <li>
          <Key side="a" /> before: {names[0]}
        </li>
        <li>
          <Key side="b" /> now: {names[1]}
        </li>
      </ul>
      <DurationColumns
        label={label}
        ranges={ranges}
        most={({ a, b }) => Math.max(Number(a), Number(b))}
        counted={({ a, b }) => `${noun(a)} before, ${noun(b)} now`}
      >
        {({ a, b }, { x, width, tall }) => (
          <>
            {a > 0 && <rect class="side-a" x={x} width={width} {...tall(a)} />}
            {b > 0 && (
              <>
                <rect fill={hatchOf("rising")} x={x} width={width} {...tall(b)} />
                <rect class="side-b" x={x} width={width} {...tall(b)} />
              </>
            )}
          </>
        )}
      </DurationColumns>
    </>
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
