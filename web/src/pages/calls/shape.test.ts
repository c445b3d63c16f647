import { expect, test } from "vitest";
import type { Row } from "../../api/types";
import { type Shape, shaped } from "./shape";

const row = (id: number, parent: number | null, kind: string, name: string, total: number, self: number): Row => ({
  id,
  parent,
  depth: id,
  kind,
  name,
  count: 1,
  host_total_ns: total,
  host_self_ns: self,
  device_total_ns: 0,
  device_self_ns: 0,
  allocated_bytes: 0,
  flops: 0,
});
const ROWS = [
  row(0, null, "python", "main", 20, 1),
  row(1, 0, "python", "fib", 12, 2),
  row(2, 1, "python", "fib", 10, 4),
  row(3, 2, "op", "aten::add", 6, 6),
  { ...row(4, 0, "op", "aten::mul", 7, 7), depth: 1 },
];
const shape = (wanted: Partial<Shape>): Shape => ({
  hidden: new Set(),
  isRecursionMerged: false,
  search: "",
  ...wanted,
});
const lines = (rows: readonly Row[]) =>
  rows.map((row) => {
    const above = rows.find(({ id }) => id === row.parent);
    return `${row.name} < ${above?.name ?? "–"} x${row.count} ${row.host_total_ns} ${row.host_self_ns}`;
  });

test("a tree stays as it is", () => {
  expect(lines(shaped(ROWS, shape({})))).toEqual([
    "main < – x1 20 1",
    "fib < main x1 12 2",
    "aten::mul < main x1 7 7",
    "fib < fib x1 10 4",
    "aten::add < fib x1 6 6",
  ]);
});

test("what calls itself is one, with its own times added up", () => {
  expect(lines(shaped(ROWS, shape({ isRecursionMerged: true })))).toEqual([
    "main < – x1 20 1",
    "fib < main x2 12 6",
    "aten::mul < main x1 7 7",
    "aten::add < fib x1 6 6",
  ]);
});

test("kinds are left out, and what they call is called by who called them", () => {
  const rows = [...ROWS, { ...row(5, 1, "op", "aten::mul", 1, 1), depth: 2 }];
  expect(lines(shaped(rows, shape({ hidden: new Set(["python"]) })))).toEqual([
    "aten::mul < – x2 8 8",
    "aten::add < – x1 6 6",
  ]);
});

test("a search leaves what is found, around it and below it", () => {
  expect(lines(shaped(ROWS, shape({ search: "MUL" })))).toEqual(["main < – x1 20 1", "aten::mul < main x1 7 7"]);
  expect(shaped(ROWS, shape({ search: "fib" })).map(({ name }) => name)).toEqual(["main", "fib", "fib", "aten::add"]);
});
