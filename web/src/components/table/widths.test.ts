import { expect, test } from "vitest";
import type { Column } from "../../api/types";
import { chooseWidths, readChosen, widthsOf } from "./widths";

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
  expect(widthsOf("a", COLUMNS)).toEqual({ each: [10, 25, 7.5, 12], sum: 54.5, isChosen: false });
  chooseWidths("a", { name: 30.123, calls: 0.1 });
  chooseWidths("a", { kind: 999 });
  expect(widthsOf("a", COLUMNS)).toEqual({ each: [200, 30.12, 3, 12], sum: 245.12, isChosen: true });
  expect(widthsOf("constructor", COLUMNS).isChosen).toBe(false);
  chooseWidths("a", null);
  expect(widthsOf("a", COLUMNS).isChosen).toBe(false);
});

test("of what was kept only what makes sense counts", () => {
  expect(readChosen(null)).toEqual({});
  expect(readChosen("{")).toEqual({});
  expect(readChosen('{"a":{"name":10,"calls":"wide","kind":-1},"b":7}')).toEqual({ a: { name: 10 }, b: {} });
});
