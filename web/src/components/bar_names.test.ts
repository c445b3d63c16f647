import { expect, test } from "vitest";
import type { Row } from "../api/types";
import { barNames, type Naming } from "./bar_names";

/** What is read beside the bars. */
const shown = (rows: readonly Row[], naming: Partial<Naming>) =>
  barNames(rows, { column: "name", nameless: "–", ...naming }).map(({ name, beside }) =>
    beside === "" ? name : `${name} · ${beside}`,
  );

test("bars of several ranks say which rank each is of, and what has no name says what it is", () => {
  const rows = [
    { rank: 0, name: "aten::mm" },
    { rank: 1, name: "aten::mm" },
    { rank: 1, name: null },
  ];
  expect(shown(rows, { nameless: "nothing was recorded" })).toEqual([
    "aten::mm · rank 0",
    "aten::mm · rank 1",
    "nothing was recorded · rank 1",
  ]);
  expect(shown(rows.slice(1), {})).toEqual(["aten::mm", "–"]);
  expect(shown([{ name: "a" }, { name: "b" }], {})).toEqual(["a", "b"]);
});

test("what rows are grouped by comes first, and the operator behind it where operators differ", () => {
  const rows = [
    { name: "aten::copy_", module: "Model_0.Layer_0" },
    { name: "aten::copy_", module: "Model_0.Layer_1" },
    { name: "aten::mm", module: "Model_0.Layer_1" },
    { name: "aten::mm", module: null },
  ];
  const naming = { column: "module", nameless: "outside of modules", beside: "name" };
  expect(shown(rows, naming)).toEqual([
    "Model_0.Layer_0 · aten::copy_",
    "Model_0.Layer_1 · aten::copy_",
    "Model_0.Layer_1 · aten::mm",
    "outside of modules · aten::mm",
  ]);
  expect(shown(rows.slice(0, 2), naming)).toEqual(["Model_0.Layer_0", "Model_0.Layer_1"]);
  expect(shown(rows.slice(1, 3), { ...naming, column: "name" })).toEqual(["aten::copy_", "aten::mm"]);
  expect(shown([], naming)).toEqual([]);
});

test("a call stack is its innermost frame, and where others have the same, the first frame that they have not", () => {
  const [a, b] = ["/lib/x/a.py(3): forward", "/lib/y.py(14): step"];
  const rows = [
    { name: "aten::mm", stack: `<built-in f>;${a};${b};m.py(1): main` },
    { name: "aten::mm", stack: `<built-in f>;${a};${b};m.py(2): main` },
    { name: "aten::mm", stack: `<built-in f>;${b}` },
    { name: "aten::mm", stack: b },
    { name: "aten::add", stack: b },
    { name: "aten::add", stack: null },
    { name: "aten::add", stack: "<built-in f of Tensor object at 0x7d67180cc500>" },
  ];
  const naming = { column: "stack", nameless: "without a call stack", isStack: true, beside: "name" };
  expect(shown(rows, naming)).toEqual([
    "<built-in f> ‹ … ‹ main (m.py:1) · aten::mm",
    "<built-in f> ‹ … ‹ main (m.py:2) · aten::mm",
    "<built-in f> ‹ step (y.py:14) · aten::mm",
    "step (y.py:14) · aten::mm",
    "step (y.py:14) · aten::add",
    "without a call stack · aten::add",
    "<built-in f of Tensor> · aten::add",
  ]);
  expect(barNames(rows, naming)[2]?.whole).toBe(`<built-in f>;${b} · aten::mm`);
});

test("rows that are alike say what else they differ by, and no other does", () => {
  const rows = [
    { name: "gemm", op: "aten::mm", grid: "[1,1,1]" },
    { name: "gemm", op: "aten::mm", grid: "[2,1,1]" },
    { name: "gemm", op: "aten::bmm", grid: "[2,1,1]" },
    { name: "copy", op: "aten::copy_", grid: "[4,1,1]" },
  ];
  expect(shown(rows, { apart: ["op", "grid"] })).toEqual([
    "gemm · aten::mm · [1,1,1]",
    "gemm · aten::mm · [2,1,1]",
    "gemm · aten::bmm",
    "copy",
  ]);
});
