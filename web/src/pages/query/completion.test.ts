import { expect, test } from "vitest";
import type { QueryColumn, QuerySchema } from "../../api/types";
import { completionAt, lineAndColumn } from "./completion";

const column = (name: string, unit: string | null = null): QueryColumn => ({
  name,
  type: "int",
  unit,
  doc: `its ${name}`,
});
const SCHEMA: QuerySchema = {
  tables: [
    { name: "slice", row: "A slice.", columns: [column("slice"), column("name", "text"), column("dur_ns", "ns")] },
    { name: "kernel", row: "A kernel.", columns: [column("slice"), column("stream"), column("grid_x")] },
  ],
  functions: [
    { name: "stddev", call: "stddev(x)", doc: "Its spread." },
    { name: "kernels", call: "kernels()", doc: "An analysis." },
  ],
  examples: [],
};

/** The labels that are listed at `|`. */
function listed(marked: string, isAsked = false): string[] | null {
  const caret = marked.indexOf("|");
  const text = marked.replace("|", "");
  return completionAt(text, caret, SCHEMA, isAsked)?.candidates.map(({ label }) => label) ?? null;
}

test("after FROM and JOIN come tables, and functions that give tables", () => {
  expect(listed("SELECT * FROM sl|")).toEqual(["slice"]);
  expect(listed("SELECT * FROM slice JOIN ke|")).toEqual(["kernel", "kernels"]);
  expect(listed("SELECT * FROM |")).toBeNull();
  expect(listed("SELECT * FROM |", true)).toEqual(["slice", "kernel", "stddev", "kernels"]);
});

test("elsewhere come the columns of the tables that are named, then functions and tables", () => {
  expect(listed("SELECT st| FROM kernel")).toEqual(["stream", "stddev"]);
  expect(listed("SELECT st| FROM slice")).toEqual(["stddev"]);
  // No table is named yet.
  expect(listed("SELECT st|")).toEqual(["stream", "stddev"]);
  expect(listed("SELECT ns| FROM slice")).toEqual(["dur_ns"]);
  expect(listed("select NA| from SLICE")).toEqual(["name"]);
});

test("behind a dot come the columns of that table, whatever it is called", () => {
  const columns = ["slice", "name", "dur_ns"];
  expect(listed("SELECT s.| FROM slice s")).toEqual(columns);
  expect(listed("SELECT s.| FROM kernel k JOIN slice AS s ON true")).toEqual(columns);
  expect(listed("SELECT slice.d| FROM slice")).toEqual(["dur_ns"]);
  expect(listed("SELECT q.| FROM slice s")).toBeNull();
});

test("nobody is disturbed who writes a word of SQL, a new name, a text, a comment or a number", () => {
  for (const marked of [
    "SELECT name FR|",
    "SELECT name from|",
    "SELECT name AS st|",
    "SELECT * FROM slice st|",
    "SELECT 'st|'",
    'SELECT "st|',
    "SELECT 1 -- st|",
    "SELECT /* st|",
    "SELECT 1st|",
    "SELECT s|",
    "SELECT st|ream FROM kernel",
    "SELECT name| FROM slice",
    "|",
  ])
    expect(listed(marked), marked).toBeNull();
  expect(listed("SELECT 'it''s', st| FROM kernel")).toEqual(["stream", "stddev"]);
  expect(listed("-- a comment's\nSELECT st| FROM kernel")).toEqual(["stream", "stddev"]);
});

test("a name replaces what was written of it, and says what it is", () => {
  const completion = completionAt("SELECT du FROM slice", 9, SCHEMA);
  expect([completion?.from, completion?.to]).toEqual([7, 9]);
  expect(completion?.candidates[0]).toEqual({
    ...{ text: "dur_ns", label: "dur_ns", kind: "column", about: "slice · ns · its dur_ns" },
  });
  expect(completionAt("SELECT std", 10, SCHEMA)?.candidates[0]?.text).toBe("stddev(");
});

test("a list stands below the line that is written", () => {
  expect(lineAndColumn("SELECT\n  na", 11)).toEqual({ line: 1, column: 4 });
  expect(lineAndColumn("", 0)).toEqual({ line: 0, column: 0 });
});
