import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Cell, Unit } from "../api/types";
import { partLook } from "../classes";
import { exactCell, formatCell, plainCell } from "./cell";

// Written by the command line's own code: crates/engine/tests/web_vectors.rs.
const VECTORS = readFileSync(new URL("./vectors.tsv", import.meta.url), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => line.split("\t") as [unit: string, value: string, text: string]);

function cellOf(text: string): Cell {
  if (text === "null") return null;
  if (text === "true" || text === "false") return text === "true";
  const number = Number(text);
  return /^-?\d+$/.test(text) && !Number.isSafeInteger(number) ? BigInt(text) : number;
}

test("every cell reads as the command line prints it", () => {
  const cells = VECTORS.filter(([unit]) => unit !== "class");
  expect(cells.length).toBeGreaterThan(3000);
  const read = cells.map(([unit, value]) => [unit, value, formatCell(unit as Unit, cellOf(value))]);
  expect(read).toEqual(cells);
});

test("the parts of breakdowns have the words of the report", () => {
  const classes = VECTORS.filter(([unit]) => unit === "class");
  expect(classes.length).toBe(13);
  expect(classes.map(([unit, name]) => [unit, name, partLook(name).words])).toEqual(classes);
});

test("a fraction of a unit is rounded as the command line rounds it", () => {
  expect(formatCell("ns", 1499.5)).toBe("1.50 µs");
  expect(formatCell("ns", -0.5)).toBe("-1 ns");
});

test("what is exact has every digit", () => {
  expect(exactCell("ns", 9223372036854775807n)).toBe("9223372036854775807 ns");
  expect(exactCell("ratio", 0.1561)).toBe("0.1561");
  expect(exactCell("bytes", null)).toBe("not known");
  expect([plainCell(0), plainCell(null), plainCell("a")]).toEqual(["0", "", "a"]);
});
