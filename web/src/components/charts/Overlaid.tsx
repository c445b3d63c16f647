import type { Num } from "../../api/types";
import { formatCount } from "../../format/units";
import { DurationColumns } from "./DurationColumns";
import { hatchOf } from "./Patterns";
import type { PairRange } from "./ranges";
import { SideKeys } from "./SideKeys";

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
      <SideKeys names={names} />
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
