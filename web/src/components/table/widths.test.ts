import { expect, test } from "vitest";
import type { Column } from "../../api/types";
import { chooseWidths, inRoom, readChosen, widthsOf } from "./widths";

const column = (name: string, unit: Column["unit"]): Column => ({
  name,
  label: name,
  unit,
  doc: "",
  is_right_aligned: false,
  has_answers: true,
});
const COLUMNS = [column("kind", "text"), column("name", "text"), column("calls", "count"), column("op", "text")];

test("a table has widths of its own until a person chooses some, which no other table has", () => {
  const { each, sum, isChosen } = widthsOf("a", COLUMNS);
  expect({ each, sum, isChosen }).toEqual({ each: [10, 25, 7.5, 12], sum: 54.5, isChosen: false });
  chooseWidths("a", { name: 30.123, calls: 0.1 });
  chooseWidths("a", { kind: 999 });
  const own = widthsOf("a", COLUMNS);
  expect([own.each, own.sum, own.isChosen]).toEqual([[200, 30.12, 3, 12], 245.12, true]);
  expect(inRoom(own, 300)).toEqual(own.each);
  expect(widthsOf("constructor", COLUMNS).isChosen).toBe(false);
  chooseWidths("a", null);
  expect(widthsOf("a", COLUMNS).isChosen).toBe(false);
});

test("a text has the room that it needs, and one that is cut what is free", () => {
  const widths = widthsOf("b", COLUMNS, { kind: 5, name: 3, op: 53 });
  const [kind, name, calls, op] = widths.each as [number, number, number, number];
  expect([kind, name, calls, op].map(Math.round)).toEqual([6, 5, 8, 14]);
  // No room: others are scrolled out of sight. Room for some of it, and room for more than all.
  expect(inRoom(widths, 10)).toEqual(widths.each);
  expect(inRoom(widths, widths.sum + 10)).toEqual([kind, name, calls, op + 10]);
  expect(inRoom(widths, 500)[3]).toBeCloseTo(54.3);
});

test("of two texts that are cut, none has more than it wishes", () => {
  const widths = widthsOf("c", COLUMNS, { kind: 5, name: 100, op: 16 });
  const given = inRoom(widths, widths.sum + 28.3);
  expect([given[1], given[3]].map((width) => Math.round((width ?? 0) * 10))).toEqual([490, 173]);
});

test("of what was kept only what makes sense counts", () => {
  expect(readChosen(null)).toEqual({});
  expect(readChosen("{")).toEqual({});
  expect(readChosen('{"a":{"name":10,"calls":"wide","kind":-1},"b":7}')).toEqual({ a: { name: 10 }, b: {} });
});
