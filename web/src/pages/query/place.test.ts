import { expect, test } from "vitest";
import { excerptAt, placeOf, stretchAt } from "./place";

test("a place is read from where an error says it is", () => {
  expect(placeOf("line 1, column 8")).toEqual({ line: 1, column: 8 });
  expect(placeOf("Line 12, Column 0")).toEqual({ line: 12, column: 1 });
  for (const where of [null, undefined, "", "slice", "line x, column 3"]) expect(placeOf(where)).toBeNull();
});

test("the word at a place is selected", () => {
  const text = "SELECT 'é😀', nme\nFROM slce";
  const selected = (line: number, column: number) => text.slice(...stretchAt(text, { line, column }));
  expect(selected(1, 14)).toBe("nme");
  expect(selected(2, 6)).toBe("slce");
  expect(selected(1, 12)).toBe(",");
  // At an end, and past all ends.
  expect([selected(1, 17), selected(2, 99), selected(9, 6)]).toEqual(["", "", "slce"]);
});

test("a long line is cut around the place", () => {
  const text = `SELECT\n\t${"x".repeat(100)}, nme, ${"y".repeat(100)}`;
  const { line, before } = excerptAt(text, { line: 2, column: 104 });
  expect(line.length).toBeLessThan(90);
  expect(line.slice(before, before + 3)).toBe("nme");
  expect([line[0], line.at(-1)]).toEqual(["…", "…"]);
  expect(excerptAt("SELECT nme", { line: 1, column: 8 })).toEqual({ line: "SELECT nme", before: 7 });
  expect(excerptAt("\tnme", { line: 1, column: 2 })).toEqual({ line: " nme", before: 1 });
  expect(excerptAt("a", { line: 3, column: 7 })).toEqual({ line: "", before: 0 });
});
