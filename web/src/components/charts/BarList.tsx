import type { Cell, Unit } from "../../api/types";
import { exactCell, formatCell } from "../../format/cell";
import { shortName } from "../../format/names";
import { MiddleCut } from "../MiddleCut";
import { Value } from "../Value";

/** One bar. */
export interface Bar {
  readonly name: string;
  /** What tells it from bars of the same name: it stands behind the name, and is not cut for it. */
  readonly beside?: string;
  /** All that it is called, where the name is a part of it. */
  readonly whole?: string;
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
          <Name bar={bar} isPath={isPath} />
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

/** What a bar is called: what is before it gives way to what stands behind its name. */
function Name({ bar, isPath }: { bar: Bar; isPath: boolean }) {
  const { beside = "", href } = bar;
  const text = formatCell("text", shortName(bar.name));
  const cut = isPath ? text : <MiddleCut text={text} />;
  const name = <bdi>{href ? <a href={href}>{cut}</a> : cut}</bdi>;
  const title = exactCell("text", bar.whole ?? bar.name);
  if (beside === "") {
    return (
      <span class={isPath ? "bar-name path" : "bar-name"} title={title}>
        {name}
      </span>
    );
  }
  return (
    <span class="bar-name with-beside" title={title}>
      <span class={isPath ? "path" : undefined}>{name}</span>
      <span class="beside">
        {" · "}
        <bdi>{formatCell("text", shortName(beside))}</bdi>
      </span>
    </span>
  );
}
