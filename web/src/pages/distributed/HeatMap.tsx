import { useSignal } from "@preact/signals";
import { useState } from "preact/hooks";
import { Pointed } from "../../components/charts/Pointed";
import { labelEvery } from "../../components/charts/scale";
import { useWidth } from "../../components/charts/width";
import { formatNs } from "../../format/units";
import type { Heat, HeatCell } from "./heat";

const LEFT = 52;
const BELOW = 20;
/** Height of a row: of few, of many, and what all of them share as far as that goes. */
const HIGHEST = 22;
const LOWEST = 11;
const SHARED = 520;
/** Height that the label of a row needs. */
const LABEL = 14;
const WIDEST = 64;

interface Props {
  readonly label: string;
  readonly heat: Heat;
  readonly ranks: readonly string[];
  readonly steps: readonly string[];
  readonly isChosen: (cell: HeatCell) => boolean;
  readonly onChoose: (cell: HeatCell) => void;
}

/** Steps of ranks as shaded boxes, of which one can be chosen with the mouse or with the arrow keys and Enter. */
export function HeatMap({ label, heat, ranks, steps, isChosen, onChoose }: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const pointed = useSignal<string | null>(null);
  const [active, setActive] = useState<readonly [rank: number, step: number]>([0, 0]);
  const each = Math.min(WIDEST, Math.max(0, width - LEFT) / Math.max(1, steps.length));
  const high = Math.max(LOWEST, Math.min(HIGHEST, Math.floor(SHARED / Math.max(1, ranks.length))));
  const everyRank = labelEvery(ranks.length, high * ranks.length, LABEL);
  const every = labelEvery(steps.length, each * steps.length, 36);
  const there = heat.cells.flatMap((cells, rank) =>
    cells.flatMap((cell, step) => (cell ? [[rank, step] as const] : [])),
  );
  const at = there.find(([rank, step]) => rank === active[0] && step === active[1]) ?? there[0];

  const focus = (to: readonly [number, number] | undefined) => {
    if (!to) return;
    setActive(to);
    box.current?.querySelector<SVGRectElement>(`[data-cell="${to[0]}-${to[1]}"]`)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!at) return;
    const [rank, step] = at;
    const row = there.filter((place) => place[0] === rank);
    const column = there.filter((place) => place[1] === step);
    const next = {
      ArrowRight: row.find((place) => place[1] > step),
      ArrowLeft: row.findLast((place) => place[1] < step),
      ArrowDown: column.find((place) => place[0] > rank),
      ArrowUp: column.findLast((place) => place[0] < rank),
      Home: row[0],
      End: row[row.length - 1],
    };
    const cell = heat.cells[rank]?.[step];
    if (Object.hasOwn(next, event.key)) focus(next[event.key as keyof typeof next]);
    else if ((event.key === "Enter" || event.key === " ") && cell) onChoose(cell);
    else return;
    event.preventDefault();
  };

  // Of thousands of boxes none has anything of its own that it can share.
  const placeOf = (event: Event): readonly [rank: number, step: number] | null => {
    const [rank, step] = (event.target as Element).getAttribute("data-cell")?.split("-").map(Number) ?? [];
    return rank === undefined || step === undefined ? null : [rank, step];
  };
  const onClick = (event: Event) => {
    const [rank, step] = placeOf(event) ?? [-1, -1];
    const cell = heat.cells[rank]?.[step];
    if (cell) onChoose(cell);
  };
  const onPoint = (event: Event) => {
    const [rank, step] = placeOf(event) ?? [-1, -1];
    const cell = heat.cells[rank]?.[step];
    if (cell) pointed.value = wordsOf(cell);
  };
  const onFocusIn = (event: Event) => {
    const place = placeOf(event);
    if (place) setActive(place);
    onPoint(event);
  };

  return (
    <div ref={box} class="heat-map">
      <svg
        class="chart"
        width={width}
        height={ranks.length * high + BELOW}
        onKeyDown={onKeyDown}
        onClick={onClick}
        onFocusIn={onFocusIn}
        onPointerOver={onPoint}
      >
        <title>{label}</title>
        {ranks.map(
          (rank, row) =>
            row % everyRank === 0 && (
              <text
                key={rank}
                class="tick"
                x={LEFT - 6}
                y={(row + 0.5) * high + 4}
                text-anchor="end"
                aria-hidden="true"
              >
                {rank}
              </text>
            ),
        )}
        {steps.map(
          (step, column) =>
            column % every === 0 && (
              <text
                key={step}
                class="tick"
                x={LEFT + (column + 0.5) * each}
                y={ranks.length * high + 15}
                text-anchor="middle"
                aria-hidden="true"
              >
                {step}
              </text>
            ),
        )}
        {heat.cells.map((cells, row) =>
          cells.map((cell, column) => {
            if (!cell) return null;
            const words = wordsOf(cell);
            const isHere = at?.[0] === row && at[1] === column;
            const box = (
              <rect
                key={`${cell.rank} ${cell.step}`}
                role="button"
                data-cell={`${row}-${column}`}
                tabindex={isHere ? 0 : -1}
                aria-label={words}
                aria-pressed={isChosen(cell)}
                class={`heat ${cell.shade === null ? "heat-cut" : `heat-${cell.shade}`}${isChosen(cell) ? " chosen" : ""}`}
                x={LEFT + column * each + 0.5}
                y={row * high + 0.5}
                width={Math.max(1, each - 1)}
                height={high - 1}
              />
            );
            if (cell.shade !== null) return box;
            return (
              <g key={`${cell.rank} ${cell.step}`}>
                {box}
                <line
                  class="heat-line"
                  x1={LEFT + column * each + 1}
                  x2={LEFT + (column + 1) * each - 1}
                  y1={(row + 1) * high - 2}
                  y2={row * high + 2}
                />
              </g>
            );
          }),
        )}
      </svg>
      <Pointed words={pointed} hint="Point at a cell to read it." />
    </div>
  );
}

function wordsOf(cell: HeatCell): string {
  const words = `step ${cell.step} of rank ${cell.rank}: ${formatNs(cell.total_ns)}`;
  return cell.isComplete ? words : `${words}, cut by recording`;
}
