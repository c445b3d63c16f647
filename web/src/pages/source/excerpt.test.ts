import { expect, test } from "vitest";
import { codeLines, lineOf } from "./excerpt";

const EXCERPT = { file: "a.py", first_line: 7, lines: ["x", "y", ""], editor_path: "/a.py", editor_url: null };

test("lines have what is known of them, of several functions too", () => {
  const rows = [
    { line: 8, function: "f", host_total_ns: 5 },
    { line: 8, function: "g", host_total_ns: 3 },
    { line: 99, function: "h", host_total_ns: 2 },
    { line: null, function: null, host_total_ns: 1 },
  ];
  const lines = codeLines(EXCERPT, rows);
  expect(lines.map(({ number, text, rows }) => [number, text, rows.map((row) => row.function)])).toEqual([
    [7, "x", []],
    [8, "y", ["f", "g"]],
    [9, "", []],
  ]);
});

test("a line of the address is a whole number from 1", () => {
  expect(["12", "0", "-3", "1.5", "x", "", "9999999999", undefined].map(lineOf)).toEqual([
    12,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
  ]);
});
