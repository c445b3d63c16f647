// One value of a result: as a person reads it, and exactly.

import type { Cell, Column, Num, Unit } from "../api/types";
import { formatBytes, formatBytesPerS, formatCount, formatNs, formatPlain, formatRatio } from "./units";

/** What stands for "not known"; never 0. */
export const MISSING = "–";

/** `value` with the unit that suits, as the command line prints it. */
export function formatCell(unit: Unit, value: Cell | undefined): string {
  if (value === null || value === undefined) return MISSING;
  if (typeof value === "string") return value;
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
    default:
      return isWhole(value) ? formatCount(value) : formatPlain(Number(value));
  }
}

const EXACT_UNITS: Partial<Record<Unit, string>> = { ns: "ns", bytes: "B", bytes_per_s: "B/s" };

/** `value` with every digit, for a hover and for copying: `1234567 ns`. */
export function exactCell(unit: Unit, value: Cell | undefined): string {
  if (value === null || value === undefined) return "not known";
  if (typeof value === "boolean") return value ? "yes" : "no";
  const suffix = EXACT_UNITS[unit];
  return suffix && typeof value !== "string" ? `${value} ${suffix}` : String(value);
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
    ratio: "a share, in 0..=1",
    plain: "a plain number",
    flag: "yes or no",
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
