import { expect, test } from "vitest";
import type { Column, RunDetail } from "../../api/types";
import { formatRoute, parseRoute, withParams } from "../../state/url";
import {
  ariaSort,
  type Choices,
  changesFor,
  choicesAt,
  namesOfNothing,
  nextSort,
  parseCondition,
  queryOf,
  shownColumns,
} from "./choices";

const column = (name: string, unit: Column["unit"], has_answers = true): Column => ({
  name,
  label: name,
  unit,
  doc: "",
  is_right_aligned: unit !== "text",
  has_answers,
});

test("choices come back from the address, whatever is typed into them", () => {
  const choices: Choices = {
    sort: "-total_ns",
    search: "a&b=c:#",
    where: [
      { column: "name", operator: "has", value: "at::native::<lambda>:1" },
      { column: "count", operator: "ge", value: "" },
    ],
    columns: ["name", "count"],
  };
  const route = withParams(parseRoute("#kernels?q=other"), changesFor(choices, "k."));
  expect(choicesAt(parseRoute(formatRoute(route)), "k.")).toEqual(choices);
  expect(choicesAt(route, "").search).toBe("other");
});

test("conditions that make no sense are left out", () => {
  expect(["", "a", "a:b", "a:xx:1", ":eq:1", "a:toString:1"].map(parseCondition)).toEqual(Array(6).fill(null));
  const route = parseRoute("#kernels?where=junk&where=count:gt:5");
  expect(choicesAt(route, "").where).toEqual([{ column: "count", operator: "gt", value: "5" }]);
});

test("a request has the order of the page unless another was chosen", () => {
  const choices = choicesAt(parseRoute("#kernels?where=a:eq:b&q=gemm"), "");
  expect(queryOf(choices, "total_ns")).toEqual([
    ["sort", "total_ns"],
    ["search", "gemm"],
    ["where", "a:eq:b"],
  ]);
  const called = choicesAt(parseRoute("#kernels?q=slow+clock"), "");
  expect(queryOf(called, "")).toEqual([
    ["sort", ""],
    ["search", "slow clock"],
    ["or", "slow_clock"],
  ]);
});

test("a head goes through three orders", () => {
  expect([nextSort("", "a"), nextSort("a", "a"), nextSort("-a", "a"), nextSort("b", "a")]).toEqual([
    "a",
    "-a",
    "",
    "a",
  ]);
  const [number, text] = [column("a", "ns"), column("b", "text")];
  expect([ariaSort("a", number), ariaSort("-a", number), ariaSort("b", number)]).toEqual([
    "descending",
    "ascending",
    undefined,
  ]);
  expect([ariaSort("b", text), ariaSort("-b", text)]).toEqual(["ascending", "descending"]);
});

test("columns without answers are not shown unless chosen", () => {
  const columns = [column("a", "text"), column("b", "ns", false), column("c", "ns")];
  const names = (chosen: string[] | null, hidden: string[] = []) =>
    shownColumns(columns, chosen, hidden).map((column) => column.name);
  expect(names(null)).toEqual(["a", "c"]);
  expect(names(null, ["c"])).toEqual(["a"]);
  expect(names(["b", "a"])).toEqual(["a", "b"]);
  expect(names(["gone"])).toEqual(["a", "c"]);
});

test("the only rank of a run is in no column, and neither are devices that it has none of", () => {
  const run = (ranks: number, devices: boolean) =>
    ({ ranks: Array.from({ length: ranks }), has: { devices } }) as unknown as RunDetail;
  expect(namesOfNothing(null)).toEqual([]);
  expect(namesOfNothing(run(2, true))).toEqual([]);
  expect(namesOfNothing(run(1, true))).toEqual(["rank"]);
  const names = namesOfNothing(run(2, false));
  expect(names).toEqual(expect.arrayContaining(["kernel_ns", "device_self_ns", "backward_device_total_ns"]));
  expect(names.filter((name) => /^(rank|host|cpu|comm)/.test(name))).toEqual([]);
});
