import { useState } from "preact/hooks";
import type { Column } from "../../api/types";
import { formatCell } from "../../format/cell";
import { Figure } from "../charts/Figure";
import { Pointed, usePointed } from "../charts/Pointed";
import { useWidth } from "../charts/width";
import { measureWords } from "../vocabulary";
import { type Box, boxesOf, type Module } from "./tree";

const ROW = 22;
/** Characters of a path that are said. */
const LONG_PATH = 300;
/** Width of a letter of the labels, in pixels: they are of one width. */
const LETTER = 6.7;

interface Props {
  readonly roots: readonly Module[];
  /** What boxes are as wide as. */
  readonly column: Column;
  /** What is drawn, in words. */
  readonly title: string;
  /** The class that a box is coloured by. */
  readonly classOf: (module: Module) => string;
  /** A fill on top of the colour, where colour alone should not say it. */
  readonly textureOf?: (module: Module) => string | null;
  /** What a box says beside its name. */
  readonly wordsOf?: (module: Module) => string;
  /** True when callers are at the top. */
  readonly isIcicle: boolean;
  readonly onChoose: (module: Module) => void;
}

/** The tree as boxes on boxes, as wide as their values. Enter or a click makes a box the whole. */
export function Flame({ roots, column, title, classOf, textureOf, wordsOf, isIcicle, onChoose }: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const [active, setActive] = useState(0);
  const pointed = usePointed();
  const boxes = boxesOf(roots, column.name, 0.7 / Math.max(1, width));
  const levels = Math.max(0, ...boxes.map((box) => box.level + 1));
  const at = Math.min(active, boxes.length - 1);

  const onKeyDown = (event: KeyboardEvent) => {
    const here = boxes[at];
    if (!here) return;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const down = { ArrowUp: isIcicle ? -1 : 1, ArrowDown: isIcicle ? 1 : -1 }[event.key];
    if (event.key === "Enter" || event.key === " ") onChoose(here.module);
    else if (step !== undefined || down !== undefined) {
      const next = step !== undefined ? neighbour(boxes, here, step) : above(boxes, here, down ?? 0);
      if (next < 0) return;
      setActive(next);
      box.current?.querySelectorAll<SVGGElement>("[role=button]")[next]?.focus();
    } else return;
    event.preventDefault();
  };

  return (
    <Figure name="modules" title={<span>{title}, as boxes as wide as their share</span>}>
      <div ref={box}>
        <svg class="chart flame" width={width} height={levels * ROW} onKeyDown={onKeyDown}>
          <title>{title}</title>
          {boxes.map((box, index) => {
            const x = box.x * width;
            const wide = Math.max(0.5, box.width * width - 1);
            const y = (isIcicle ? box.level : levels - 1 - box.level) * ROW;
            const value = formatCell(column.unit, box.module.row[column.name]);
            const words = wordsOf ? `${value}, ${wordsOf(box.module)}` : value;
            const place = { x, y, width: wide, height: ROW - 1, rx: 2 };
            const texture = textureOf?.(box.module);
            const said = `${lastOf(box.module.path)}: ${words}`;
            return (
              <g
                key={box.module.path}
                role="button"
                tabindex={index === at ? 0 : -1}
                aria-label={said}
                onClick={() => onChoose(box.module)}
                onFocus={() => {
                  setActive(index);
                  pointed.value = said;
                }}
                onPointerEnter={() => {
                  pointed.value = said;
                }}
              >
                <title>{`${box.module.path}\n${measureWords(column)}: ${words}`}</title>
                <rect class={classOf(box.module)} {...place} />
                {texture && wide > 3 && <rect fill={texture} {...place} />}
              </g>
            );
          })}
          {/* Apart from the boxes, whose names are whole: what is cut off here is for the eye alone. */}
          <g aria-hidden="true">
            {boxes.map((box) => {
              const { path } = box.module;
              const name = labelOf(box.module, wordsOf?.(box.module), box.width * width);
              const letters = Math.floor((box.width * width - 7) / LETTER);
              return letters < 3 ? null : (
                <text key={path} x={box.x * width + 3} y={(isIcicle ? box.level : levels - 1 - box.level) * ROW + 15}>
                  {name.length > letters ? `${name.slice(0, letters - 1)}…` : name}
                </text>
              );
            })}
          </g>
        </svg>
        <Pointed words={pointed} hint={`Point at a box to read its ${measureWords(column)}.`} />
      </div>
    </Figure>
  );
}

/** The end of a path, which says what a box is. */
const lastOf = (path: string): string => (path.length > LONG_PATH ? `…${path.slice(-LONG_PATH)}` : path);

/** A name, and what else the box says when there is room for both. */
function labelOf({ name }: Module, words: string | undefined, width: number): string {
  const whole = words ? `${name} ${words}` : name;
  return whole.length * LETTER + 7 <= width ? whole : name;
}

/** The next box of the same level, to the right or to the left. */
function neighbour(boxes: readonly Box[], here: Box, step: number): number {
  const level = boxes.filter((box) => box.level === here.level);
  const next = level[level.indexOf(here) + step];
  return next ? boxes.indexOf(next) : -1;
}

/** The caller, or the first module that is called. */
function above(boxes: readonly Box[], here: Box, step: number): number {
  if (step < 0) return boxes.findIndex((box) => box.module === here.module.parent);
  return boxes.findIndex((box) => box.module.parent === here.module);
}
