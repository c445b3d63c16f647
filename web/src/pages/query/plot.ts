// Which columns of a result a plot shows.

import type { Row } from "../../api/types";
import type { ShownAs } from "./address";
import type { AnswerColumn, AnswerTable } from "./answer_table";

/** How a plot shows a result. */
export type PlotKind = Exclude<ShownAs, "table">;

/** The columns of a plot, and those that could be. */
export interface Axes {
  /** What bars are called, or where points are from left to right. */
  readonly x: AnswerColumn;
  /** How long bars are, or where points are from below to above. */
  readonly y: AnswerColumn;
  readonly xChoices: readonly AnswerColumn[];
  readonly yChoices: readonly AnswerColumn[];
}

/**
 * The columns of a plot: those that were chosen, else the first that suit. A text where a result has none of what the plot
 * needs.
 */
export function axesOf(
  kind: PlotKind,
  { columns }: AnswerTable,
  chosen: { readonly x?: string | undefined; readonly y?: string | undefined },
): Axes | string {
  const numbers = columns.filter((column) => column.isNumber);
  const called = (choices: readonly AnswerColumn[], name: string | undefined) =>
    choices.find((column) => column.name === name);
  if (kind === "bars") {
    const needs = "Bars need a column of numbers, and another that says what each is.";
    const x = called(columns, chosen.x) ?? columns.find((column) => !column.isNumber) ?? columns[0];
    const y = called(numbers, chosen.y) ?? numbers.find((column) => column !== x);
    if (!x || !y || columns.length < 2) return needs;
    return { x, y, xChoices: columns, yChoices: numbers };
  }
  const needs = `A ${kind} plot needs two columns of numbers; this result has ${numbers.length === 0 ? "none" : "one"}.`;
  if (numbers.length < 2) return needs;
  const x = called(numbers, chosen.x) ?? numbers.find((column) => column.name !== chosen.y);
  const y = called(numbers, chosen.y) ?? numbers.find((column) => column !== x);
  return x && y ? { x, y, xChoices: numbers, yChoices: numbers } : needs;
}

/** The most bars that are drawn. */
export const MOST_BARS = 50;

/** The rows that have a bar: the first in their order, without those whose value is not known. */
export const withBars = (rows: readonly Row[], { y }: Axes): readonly Row[] =>
  rows.filter((row) => row[y.name] !== null).slice(0, MOST_BARS);
