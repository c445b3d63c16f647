// Widths of columns, in rem. They are fixed, so that nothing moves while rows come and go.

import type { Column } from "../../api/types";

/** Room for the longest number that is shown: `-999,999,999`. */
const NUMBER = 7.5;
const FIRST_TEXT = 20;
const TEXT = 12;

/** A width for each column, and their sum. */
export function widthsOf(columns: readonly Column[]): { readonly each: readonly number[]; readonly sum: number } {
  const firstText = columns.findIndex((column) => column.unit === "text");
  const each = columns.map((column, at) => {
    if (column.unit !== "text") return Math.max(NUMBER, column.label.length * 0.55 + 3);
    return at === firstText ? FIRST_TEXT : TEXT;
  });
  return { each, sum: each.reduce((sum, width) => sum + width, 0) };
}
