// Widths of columns, in rem. They are fixed, so that nothing moves while rows come and go. Those that a person drags are a
// habit, which the browser remembers: by the table and the column.

import { effect, signal } from "@preact/signals";
import type { Column, Unit } from "../../api/types";
import { remember, remembered } from "../../state/remembered";
import { isKind } from "./words";

/** Room for the longest value of a unit: `-999,999,999` is one of the others. */
const NUMBERS: Partial<Record<Unit, number>> = { ns: 6.5, bytes: 6.5, ratio: 5.5, flag: 4.5, id: 5.5 };
const NUMBER = 7.5;
/** What a row is called, one of a few words, and other texts. */
const NAME = 25;
const KIND = 10;
const TEXT = 12;
/** The least and the most that a column can be dragged to. */
const LEAST = 3;
const MOST = 200;

export interface Widths {
  readonly each: readonly number[];
  readonly sum: number;
  /** Whether a person chose them: then what remains of the room is no column's. */
  readonly isChosen: boolean;
}

type Chosen = Readonly<Record<string, Readonly<Record<string, number>>>>;

const KEY = "stepscope-columns";
const chosen = signal<Chosen>(readChosen(remembered(KEY)));
effect(() => remember(KEY, JSON.stringify(chosen.value)));

/** A width for each column of a table, and their sum. */
export function widthsOf(table: string, columns: readonly Column[]): Widths {
  const own = Object.hasOwn(chosen.value, table) ? chosen.value[table] : undefined;
  const name = columns.findIndex((column) => column.unit === "text" && !isKind(column));
  const each = columns.map((column, at) => {
    const kept = own && Object.hasOwn(own, column.name) ? own[column.name] : undefined;
    if (kept !== undefined) return kept;
    if (column.unit !== "text") return Math.max(NUMBERS[column.unit] ?? NUMBER, column.label.length * 0.55 + 2.6);
    return at === name ? NAME : isKind(column) ? KIND : TEXT;
  });
  return { each, sum: each.reduce((sum, width) => sum + width, 0), isChosen: own !== undefined };
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
