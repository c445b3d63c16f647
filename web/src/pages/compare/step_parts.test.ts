import { expect, test } from "vitest";
import type { Row } from "../../api/types";
import { exactMilliseconds, following, largestOf, reachOf, stepPartsOf } from "./step_parts";

const row = (row: string, name: string, a_ns: number | null, b_ns: number | null): Row => ({
  row,
  class: row === "part" ? name.slice(0, name.indexOf(" ")) : name,
  name: row === "part" ? name.slice(name.indexOf(" ") + 1) : null,
  a_ns,
  b_ns,
  change_ns: a_ns === null || b_ns === null ? null : b_ns - a_ns,
});

const ROWS = [
  row("class", "kernel", 10, 40),
  row("part", "kernel gemm", 10, 25),
  row("part", "kernel add", 0, 15),
  row("class", "comm", 0, 0),
  row("class", "cpu", 30, 10),
  row("part", "cpu mm", 30, 10),
  row("total", "total", 40, 50),
];

test("classes have their parts, and those that are 0 in both runs are left out", () => {
  const parts = stepPartsOf(ROWS);
  const told = parts?.classes.map(({ name, parts }) => [name, ...parts.map((part) => part.name)]);
  expect(told).toEqual([
    ["kernel", "gemm", "add"],
    ["cpu", "mm"],
  ]);
  expect(parts?.total.change_ns).toBe(10);
  expect(stepPartsOf([row("class", "cpu", 3, null), row("total", "total", 3, null)])).toBeNull();
  expect(stepPartsOf([])).toBeNull();
});

test("bars follow each other to the difference of the steps", () => {
  const { classes = [], total } = stepPartsOf(ROWS) ?? {};
  const bars = following(
    classes.map(({ row }) => row),
    0,
  );
  expect(bars).toEqual([
    { from: 0, to: 30 },
    { from: 30, to: 10 },
  ]);
  expect(bars.at(-1)?.to).toBe(total?.change_ns);
  expect(following(classes[0]?.parts ?? [], 0).at(-1)).toEqual({ from: 15, to: 30 });
  expect(reachOf(bars)).toEqual({ from: 0, to: 30 });
  expect(reachOf([{ from: 0, to: -5 }])).toEqual({ from: -5, to: 0 });
});

test("milliseconds have every digit, so that what is shown sums", () => {
  const told = [0, 5, -5, 999, 1_000, 59_312_345, -1_000_000, 123_456_789_012n].map(exactMilliseconds);
  expect(told.map((digits) => digits.join(" "))).toEqual([
    "0.000 000",
    "0.000 005",
    "-0.000 005",
    "0.000 999",
    "0.001 000",
    "59.312 345",
    "-1.000 000",
    "123456.789 012",
  ]);
});

test("the largest changes and all others together sum to the difference", () => {
  const parts = stepPartsOf([
    ...ROWS.filter(({ row }) => row !== "total"),
    row("class", "other", 7, 7),
    row("part", "other sleep", 5, 3),
    { ...row("part", "other ", 2, 4), name: null },
    row("class", "memcpy", 1, 4),
    row("total", "total", 48, 61),
  ]);
  if (!parts) throw new Error("there are steps");
  const { first, others } = largestOf(parts, 3);
  expect(first.map(({ class: of, name, ns }) => [of, name, ns])).toEqual([
    ["cpu", "mm", -20],
    ["kernel", "gemm", 15],
    ["kernel", "add", 15],
  ]);
  // What has no parts stands for itself.
  expect(others).toEqual({ count: 3, ns: 3n });
  const sum = first.reduce((sum, { ns }) => sum + Number(ns), Number(others?.ns));
  expect(sum).toBe(parts.total.change_ns);
  expect(largestOf(parts, 6)).toMatchObject({ others: null, first: { length: 6 } });
});
