import { expect, test } from "vitest";
import { parseExact } from "../../api/json";
import type { QueryAnswer, QueryColumn } from "../../api/types";
import { formatCell } from "../../format/cell";
import { sorted, tableOf, unitOf, widthsFor, withMore } from "./answer_table";

const column = (name: string, type: QueryColumn["type"], unit: string | null = null): QueryColumn => ({
  ...{ name, type, unit, doc: null },
});
const answer = (columns: QueryColumn[], rows: string): QueryAnswer => ({
  ...{ columns, rows: parseExact(rows) as unknown[][], is_complete: true },
});

test("further rows have the names of the first", () => {
  const columns = [column("a", "int"), column("a", "int")];
  const table = withMore(tableOf(answer(columns, "[[1,2]]")), answer(columns, "[[3,4]]"));
  expect(table.rows).toEqual([
    { a: 1, "a (2)": 2 },
    { a: 3, "a (2)": 4 },
  ]);
});

test("a column has the unit that is known of it, else what its type says", () => {
  expect(unitOf(column("a", "int", "ns"))).toBe("ns");
  expect(unitOf(column("a", "int"))).toBe("number");
  expect(unitOf(column("a", "float", "furlongs"))).toBe("number");
  expect(unitOf(column("a", "flag"))).toBe("flag");
  for (const type of ["text", "time", "list", "other"] as const) expect(unitOf(column("a", type))).toBe("text");
});

test("cells are what the answer says, and lists are compact JSON", () => {
  const { columns, rows } = tableOf(
    answer(
      [column("id", "int"), column("shape", "list"), column("seen", "flag"), column("of", "other")],
      '[[9007199254740993,[1, 9007199254740993, "a\\"b", null, [2]],true,{"a": 1.5}],[null,[],false,null]]',
    ),
  );
  expect(rows).toEqual([
    { id: 9007199254740993n, shape: '[1,9007199254740993,"a\\"b",null,[2]]', seen: true, of: '{"a":1.5}' },
    { id: null, shape: "[]", seen: false, of: null },
  ]);
  expect(columns.map((column) => [column.is_right_aligned, column.isNumber])).toEqual([
    [true, true],
    [false, false],
    [false, false],
    [false, false],
  ]);
});

test("each of the columns of one name has its own cells, whatever the name is", () => {
  const columns = ["name", "name", "name (2)", "__proto__", "name"].map((name) => column(name, "int"));
  const table = tableOf(answer(columns, "[[1,2,3,4,5]]"));
  const names = table.columns.map((column) => column.name);
  expect(names).toEqual(["name", "name (3)", "name (2)", "__proto__", "name (4)"]);
  expect(names.map((name) => table.rows[0]?.[name])).toEqual([1, 2, 3, 4, 5]);
});

test("numbers fall and texts rise, and what is not known is last", () => {
  const table = tableOf(
    answer([column("n", "int"), column("name", "text")], '[[2,"b"],[null,null],[9007199254740993,"a"],[-1,"c"]]'),
  );
  const by = (sort: string, name: string) => sorted(table, sort).map((row) => row[name]);
  expect(by("n", "n")).toEqual([9007199254740993n, 2, -1, null]);
  expect(by("-n", "n")).toEqual([-1, 2, 9007199254740993n, null]);
  expect(by("name", "name")).toEqual(["a", "b", "c", null]);
  expect(by("-name", "name")).toEqual(["c", "b", "a", null]);
  for (const sort of ["", "other", "-"]) expect(sorted(table, sort)).toBe(table.rows);
});

test("a column is as wide as what is in it, within limits", () => {
  const table = tableOf(answer([column("n", "int"), column("name", "text")], `[[1,"${"x".repeat(400)}"],[2,""]]`));
  expect(widthsFor(table)).toEqual({ each: [4.5, 26], wished: [4.5, 60], sum: 30.5, isChosen: false });
});

test("a number of which nothing is known has the digits that a person reads", () => {
  const read = [1234567, 9007199254740993n, 0.00123456, 12.3456, -1234.567, 1.5e-9, 2.5e20].map((value) =>
    formatCell("number", value),
  );
  expect(read).toEqual([
    "1,234,567",
    "9,007,199,254,740,993",
    "0.001235",
    "12.35",
    "-1,234.57",
    "1.500e-9",
    "2.500e+20",
  ]);
});
