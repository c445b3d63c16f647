// How a change looks: more is warm and striped, less is cold and dotted, so that neither needs to be told by its colour.

import type { Row } from "../../api/types";
import type { Texture } from "../../classes";
import { MISSING } from "../../format/cell";
import { formatRatio } from "../../format/units";

export interface Shift {
  /** Its class in styles/compare.css. */
  readonly look: string;
  readonly texture: Texture | null;
  readonly words: string;
}

/** From which change on a look is used; less than the first is as before. */
const LEVELS = [0.02, 0.1, 0.3] as const;

export const SAME: Shift = { look: "shift-same", texture: null, words: "as before, within 2 %" };
const NEW: Shift = { look: "shift-new", texture: "cross", words: "new" };

/** Every look with its words, for a legend: from much less to much more. */
export const LEGEND: readonly Shift[] = [
  { look: "shift-less-3", texture: "dots", words: "30 % less, or more than that" },
  { look: "shift-less-2", texture: "dots", words: "10 to 30 % less" },
  { look: "shift-less-1", texture: "dots", words: "2 to 10 % less" },
  SAME,
  { look: "shift-more-1", texture: "rising", words: "2 to 10 % more" },
  { look: "shift-more-2", texture: "rising", words: "10 to 30 % more" },
  { look: "shift-more-3", texture: "rising", words: "30 % more, or more than that" },
  NEW,
];

/** The column that has a measure's change as a share of what it was. */
export const ratioOf = (measure: string): string => `change_${measure.replace(/_(ns|bytes)$/, "")}_ratio`;

/** How a row's measure has changed. */
export function shiftOf(row: Row, measure: string): Shift {
  const ratio = row[ratioOf(measure)];
  if (row.runs === "b") return NEW;
  if (typeof ratio !== "number") return { ...SAME, words: row.runs === "a" ? "gone" : MISSING };
  const words = `${ratio > 0 ? "+" : ""}${formatRatio(ratio)}`;
  const level = LEVELS.filter((least) => Math.abs(ratio) >= least).length;
  if (level === 0) return { ...SAME, words };
  return ratio > 0
    ? { look: `shift-more-${level}`, texture: "rising", words }
    : { look: `shift-less-${level}`, texture: "dots", words };
}
