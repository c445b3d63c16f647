import { expect, test } from "vitest";
import type { QueryColumn } from "../../api/types";
import { tableOf } from "./answer_table";
import { axesOf, MOST_BARS, type PlotKind, withBars } from "./plot";

const COLUMNS: Readonly<Record<string, QueryColumn["type"]>> = {
  ...{ name: "text", kind: "text", step: "int", total: "int", mean: "float", flag: "flag" },
};

/** The columns of a plot of a result with these columns. */
function axes(kind: PlotKind, names: string, chosen: { x?: string; y?: string } = {}): string {
  const columns = names.split(" ").map((name) => ({ name, type: COLUMNS[name] ?? "text", unit: null, doc: null }));
  const found = axesOf(kind, tableOf({ columns, rows: [], is_complete: true }), chosen);
  return typeof found === "string" ? found : `${found.x.name} ${found.y.name}`;
}

test("bars have the first name and the first number", () => {
  expect(axes("bars", "step name total mean")).toBe("name step");
  expect(axes("bars", "step total")).toBe("step total");
  expect(axes("bars", "flag mean")).toBe("flag mean");
  for (const names of ["name kind", "total", "name"]) expect(axes("bars", names)).toMatch(/^Bars need/);
});

test("lines and points have the first two numbers", () => {
  expect(axes("line", "name step total mean")).toBe("step total");
  expect(axes("scatter", "total name mean")).toBe("total mean");
  expect(axes("line", "name total")).toBe("A line plot needs two columns of numbers; this result has one.");
  expect(axes("scatter", "name")).toBe("A scatter plot needs two columns of numbers; this result has none.");
});

test("what was chosen is shown where the result has it", () => {
  expect(axes("bars", "name kind step total", { x: "kind", y: "total" })).toBe("kind total");
  expect(axes("bars", "name step total", { x: "step" })).toBe("step total");
  expect(axes("line", "step total mean", { x: "mean" })).toBe("mean step");
  expect(axes("line", "step total mean", { y: "step" })).toBe("total step");
  expect(axes("line", "step total mean", { x: "gone", y: "name" })).toBe("step total");
});

test("a value that is not known has no bar, and there are not too many", () => {
  const columns = (["name", "total"] as const).map((name) => ({
    name,
    type: COLUMNS[name] ?? "text",
    unit: null,
    doc: null,
  }));
  const rows = Array.from({ length: 200 }, (_, at) => [`n${at}`, at % 2 === 0 ? at : null]);
  const table = tableOf({ columns, rows, is_complete: true });
  const found = axesOf("bars", table, {});
  if (typeof found === "string") throw new Error(found);
  const shown = withBars(table.rows, found);
  expect([shown.length, shown[1]?.name]).toEqual([MOST_BARS, "n2"]);
});
