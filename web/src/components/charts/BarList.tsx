import { useEffect, useRef, useState } from "preact/hooks";
import type { Cell, Unit } from "../../api/types";
import { exactCell, formatCell } from "../../format/cell";
import { shortName } from "../../format/names";
import { MiddleCut } from "../MiddleCut";
import { Value } from "../Value";
import { Pointed, usePointed } from "./Pointed";

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

/** Named values as horizontal bars, the longest as wide as there is room. What is cut of a name is read below them. */
export function BarList({ label, unit, bars, isDevice, isPath = false }: Props) {
  const pointed = usePointed();
  const list = useRef<HTMLOListElement>(null);
  const [active, setActive] = useState(0);
  const names = bars.map(wholeOf).join("\n");
  // Of other bars than were pointed at nothing is said.
  useEffect(() => {
    void names;
    pointed.value = null;
  }, [names, pointed]);
  const most = Math.max(0, ...bars.map((bar) => Number(bar.value ?? 0)));
  const reached = Math.min(active, bars.length - 1);
  const onKeyDown = (event: KeyboardEvent) => {
    const moves: Record<string, number> = {
      ArrowDown: reached + 1,
      ArrowUp: reached - 1,
      Home: 0,
      End: bars.length - 1,
    };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    list.current?.querySelectorAll<HTMLElement>("a, [role=img]")[to]?.focus();
  };
  return (
    <>
      <ol class={isDevice ? "bars device" : "bars"} aria-label={label} ref={list}>
        {bars.map((bar, at) => {
          const say = () => {
            pointed.value = wholeOf(bar);
          };
          const onFocus = () => {
            setActive(at);
            say();
          };
          return (
            <li key={`${at} ${bar.name.slice(0, 200)}`} onPointerEnter={say}>
              <Name bar={bar} isPath={isPath} isReached={at === reached} onFocus={onFocus} onKeyDown={onKeyDown} />
              <span class="bar-track" aria-hidden="true">
                <span class="bar" style={{ width: most > 0 ? `${(Number(bar.value ?? 0) / most) * 100}%` : "0" }} />
              </span>
              <span class="number">
                <Value unit={unit} value={bar.value} />
              </span>
            </li>
          );
        })}
      </ol>
      <Pointed words={pointed} hint="Point at a bar, or use Tab and the arrow keys, to read all of its name." />
    </>
  );
}

const wholeOf = (bar: Bar): string => exactCell("text", bar.whole ?? bar.name);

interface NameProps {
  readonly bar: Bar;
  readonly isPath: boolean;
  /** True for the one that Tab reaches; arrow keys reach the others. */
  readonly isReached: boolean;
  readonly onFocus: () => void;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

/** What a bar is called: what is before it gives way to what stands behind its name. */
function Name({ bar, isPath, isReached, onFocus, onKeyDown }: NameProps) {
  const { beside = "", href } = bar;
  const text = formatCell("text", shortName(bar.name));
  const cut = isPath ? text : <MiddleCut text={text} />;
  const title = wholeOf(bar);
  const name = href ? (
    <a href={href} tabIndex={isReached ? 0 : -1} onFocus={onFocus} onKeyDown={onKeyDown}>
      {cut}
    </a>
  ) : (
    <span role="img" aria-label={title} tabIndex={isReached ? 0 : -1} onFocus={onFocus} onKeyDown={onKeyDown}>
      {cut}
    </span>
  );
  if (beside === "") {
    return (
      <span class={isPath ? "bar-name path" : "bar-name"} title={title}>
        <bdi>{name}</bdi>
      </span>
    );
  }
  return (
    <span class="bar-name with-beside" title={title}>
      <span class={isPath ? "path" : undefined}>
        <bdi>{name}</bdi>
      </span>
      <span class="beside">
        {" · "}
        <bdi>{formatCell("text", shortName(beside))}</bdi>
      </span>
    </span>
  );
}
