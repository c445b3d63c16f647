// One value of a result: as a person reads it, and exactly.

import type { Cell, Column, Num, Unit } from "../api/types";
import { clipped } from "./printable";
import {
  formatBytes,
  formatBytesPerS,
  formatCount,
  formatLarge,
  formatNs,
  formatNumber,
  formatPlain,
  formatRatio,
} from "./units";

/** What stands for "not known"; never 0. */
export const MISSING = "–";

/** From here on a count has no room for all of its digits: those are on the hover. */
const LONG = 1e9;

/** Characters of a text in a cell, and of what hovering over it says: names of a megabyte would make the page wait. */
const CELL_LENGTH = 500;
const HOVER_LENGTH = 5_000;

/** `value` with the unit that suits, as the command line prints it. */
export function formatCell(unit: Unit, value: Cell | undefined): string {
  if (value === null || value === undefined) return MISSING;
  if (typeof value === "string") return clipped(value, CELL_LENGTH);
  if (typeof value === "boolean") return value ? "yes" : "no";
  switch (unit) {
    case "ns":
      return formatNs(whole(value));
    case "bytes":
      return formatBytes(whole(value));
    case "bytes_per_s":
      return formatBytesPerS(whole(value));
    case "ratio":
      return formatRatio(Number(value));
    case "id":
      return String(value);
    case "plain":
      return formatPlain(Number(value));
    case "number":
      return formatNumber(value);
    default:
      return isWhole(value) ? formatCount(value) : formatPlain(Number(value));
  }
}

/** `value` where there is little room: as `formatCell`, but a number of many digits as `21.3 G`, so that none is ever cut. */
export function shortCell(unit: Unit, value: Cell | undefined): string {
  const isLong = typeof value !== "string" && typeof value !== "boolean" && Math.abs(Number(value ?? 0)) >= LONG;
  return isLong && (unit === "count" || unit === "plain") ? formatLarge(whole(value as Num)) : formatCell(unit, value);
}

const EXACT_UNITS: Partial<Record<Unit, string>> = { ns: "ns", bytes: "B", bytes_per_s: "B/s" };

/** `value` with every digit, for a hover and for copying: `1234567 ns`. */
export function exactCell(unit: Unit, value: Cell | undefined): string {
  if (value === null || value === undefined) return "not known";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return clipped(value, HOVER_LENGTH);
  const suffix = EXACT_UNITS[unit];
  return suffix ? `${value} ${suffix}` : String(value);
}

/** `value` as a cell of a copied table: every digit, no unit, nothing where it is not known. */
export function plainCell(value: Cell | undefined): string {
  return value === null || value === undefined ? "" : String(value);
}

/** A unit in words, for a column's description. */
export function unitWords(column: Column): string {
  const words: Record<Unit, string> = {
    text: "text",
    count: "a count",
    id: "a number that names something",
    ns: "nanoseconds",
    bytes: "bytes",
    bytes_per_s: "bytes in a second",
    ratio: "a share of 1",
    plain: "a plain number",
    flag: "yes or no",
    number: "a number",
  };
  return words[column.unit];
}

function isWhole(value: Num): boolean {
  return typeof value === "bigint" || Number.isInteger(value);
}

/** Nearest whole number, halves away from 0, as Rust rounds. */
function whole(value: Num): Num {
  if (isWhole(value)) return value;
  return Math.sign(Number(value)) * Math.round(Math.abs(Number(value)));
}
