import type { ClassName } from "../../classes";
import { formatCount } from "../../format/units";
import { DurationColumns } from "./DurationColumns";
import type { Range } from "./ranges";

interface Props {
  readonly label: string;
  readonly ranges: readonly Range[];
  readonly colour: ClassName;
}

/** How often what happens, by how long it takes: a column a range, as wide as it is. */
export function Histogram({ label, ranges, colour }: Props) {
  const counted = ({ count }: Range) => `${formatCount(count)} ${Number(count) === 1 ? "run" : "runs"}`;
  return (
    <DurationColumns label={label} ranges={ranges} most={({ count }) => Number(count)} counted={counted}>
      {({ count }, { x, width, tall }) => <rect class={`class-${colour}`} x={x} width={width} {...tall(count)} />}
    </DurationColumns>
  );
}
