import type { Cell, Unit } from "../../api/types";
import { exactCell, formatCell } from "../../format/cell";
import { shortName } from "../../format/names";
import { MiddleCut } from "../MiddleCut";
import { Value } from "../Value";

/** One bar. */
export interface Bar {
  readonly name: string;
  readonly value: Cell;
  readonly href?: string | undefined;
}

interface Props {
  readonly label: string;
  readonly unit: Unit;
  readonly bars: readonly Bar[];
  readonly isDevice: boolean;
  /** True where names are paths, which differ at their ends. */
  readonly isPath?: boolean;
}

/** Named values as horizontal bars, the longest as wide as there is room. */
export function BarList({ label, unit, bars, isDevice, isPath = false }: Props) {
  const most = Math.max(0, ...bars.map((bar) => Number(bar.value ?? 0)));
  return (
    <ol class={isDevice ? "bars device" : "bars"} aria-label={label}>
      {bars.map((bar, at) => (
        <li key={`${at} ${bar.name.slice(0, 200)}`}>
          <span class={isPath ? "bar-name path" : "bar-name"} title={exactCell("text", bar.name)}>
            <bdi>{named(bar, isPath)}</bdi>
          </span>
          <span class="bar-track" aria-hidden="true">
            <span class="bar" style={{ width: most > 0 ? `${(Number(bar.value ?? 0) / most) * 100}%` : "0" }} />
          </span>
          <span class="number">
            <Value unit={unit} value={bar.value} />
          </span>
        </li>
      ))}
    </ol>
  );
}

function named(bar: Bar, isPath: boolean) {
  const text = formatCell("text", shortName(bar.name));
  const name = isPath ? text : <MiddleCut text={text} />;
  return bar.href ? <a href={bar.href}>{name}</a> : name;
}
