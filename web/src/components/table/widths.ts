// Widths of columns, in rem. They are fixed, so that nothing moves while rows come and go: texts have the room of the first
// rows that came. Those that a person drags are a habit, which the browser remembers: by the table and the column.

import { effect, signal } from "@preact/signals";
import type { Column, Unit } from "../../api/types";
import { remember, remembered } from "../../state/remembered";
import { hasSentences, isKind } from "./words";

/** Room for the longest value of a unit: `-999,999,999` is one of the others. */
const NUMBERS: Partial<Record<Unit, number>> = { ns: 6.5, bytes: 6.5, ratio: 5.5, flag: 4.5, id: 5.5 };
const NUMBER = 7.5;
/** What a row is called, one of a few words, and other texts, where no row is known. */
const NAME = 25;
const KIND = 10;
const TEXT = 12;
/** What is beside a text in its cell. */
const BESIDE = 1.3;
/** The most that a text has for which others are scrolled out of sight, and the most that it has of free room. */
const NEEDED = { name: 24, kind: 18, text: 14, sentence: 30 } as const;
const WISHED = 60;
/** Names for programs, beside what rows are called. */
const CODES = new Set(["id", "rule", "code", "group"]);
/** The least and the most that a column can be dragged to. */
const LEAST = 3;
const MOST = 200;

export interface Widths {
  readonly each: readonly number[];
  /** What each has where there is room. */
  readonly wished: readonly number[];
  readonly sum: number;
  /** Whether a person chose them: then what remains of the room is no column's. */
  readonly isChosen: boolean;
}

type Chosen = Readonly<Record<string, Readonly<Record<string, number>>>>;

const KEY = "stepscope-columns";
const chosen = signal<Chosen>(readChosen(remembered(KEY)));
effect(() => remember(KEY, JSON.stringify(chosen.value)));

/** A width for each column of a table, and their sum; `texts` has how wide the widest text of a column is. */
export function widthsOf(
  table: string,
  columns: readonly Column[],
  texts: Readonly<Record<string, number>> = {},
): Widths {
  const own = Object.hasOwn(chosen.value, table) ? chosen.value[table] : undefined;
  const name = columns.findIndex((column) => column.unit === "text" && !isKind(column) && !CODES.has(column.name));
  const each: number[] = [];
  const wished: number[] = [];
  for (const [at, column] of columns.entries()) {
    const kept = own && Object.hasOwn(own, column.name) ? own[column.name] : undefined;
    const head = column.label.length * 0.55 + 2.6;
    let [width, wish] = [kept ?? Math.max(NUMBERS[column.unit] ?? NUMBER, head), 0];
    if (kept === undefined && column.unit === "text") {
      const is = isKind(column) ? "kind" : hasSentences(column) ? "sentence" : at === name ? "name" : "text";
      const text = texts[column.name];
      if (text === undefined) width = { name: NAME, kind: KIND, text: TEXT, sentence: TEXT }[is];
      else {
        wish = Math.min(Math.max(text + BESIDE, head), WISHED);
        width = Math.min(wish, Math.max(NEEDED[is], head));
      }
    }
    each.push(width);
    wished.push(Math.max(width, wish));
  }
  return { each, wished, sum: each.reduce((sum, width) => sum + width, 0), isChosen: own !== undefined };
}

/** The widths where there is this much room: what is free goes to those that are cut, to each as much as it wishes. */
export function inRoom({ each, wished, sum, isChosen }: Widths, room: number): readonly number[] {
  const given = [...each];
  let free = room - sum;
  const lack = (at: number) => (wished[at] ?? 0) - (given[at] ?? 0);
  let cut = [...given.keys()].filter((at) => lack(at) > 0);
  // Those that lack least are served first, so that none has more than it wishes.
  cut.sort((one, other) => lack(one) - lack(other));
  while (!isChosen && free > 0 && cut.length > 0) {
    const [at, ...others] = cut as [number, ...number[]];
    const part = Math.min(lack(at), free / cut.length);
    given[at] = (given[at] ?? 0) + part;
    free -= part;
    cut = others;
  }
  return given;
}

/** Keeps what a person chose for some columns of a table; `null` for none of it any more. */
export function chooseWidths(table: string, widths: Readonly<Record<string, number>> | null): void {
  const { [table]: own, ...others } = chosen.peek();
  const within = (width: number) => Math.min(Math.max(Math.round(width * 100) / 100, LEAST), MOST);
  const kept = Object.entries(widths ?? {}).map(([name, width]) => [name, within(width)] as const);
  chosen.value = widths === null ? others : { ...others, [table]: { ...own, ...Object.fromEntries(kept) } };
}

/** What was kept, as far as it makes sense. */
export function readChosen(text: string | null): Chosen {
  let kept: unknown;
  try {
    kept = JSON.parse(text ?? "{}");
  } catch {
    return {};
  }
  const entries = (of: unknown) => (typeof of === "object" && of !== null ? Object.entries(of) : []);
  const isWidth = ([, width]: [string, unknown]) => typeof width === "number" && width >= LEAST && width <= MOST;
  return Object.fromEntries(
    entries(kept).map(([table, widths]) => [table, Object.fromEntries(entries(widths).filter(isWidth))]),
  );
}
