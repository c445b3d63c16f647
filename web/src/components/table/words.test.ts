import { expect, test } from "vitest";
import type { Column } from "../../api/types";
import { cellWords, docWords, isSum, kindName, kindWords, valuesCalled } from "./words";

const column = (name: string, unit: Column["unit"]): Column => ({
  ...{ name, unit, label: name, doc: "", is_right_aligned: unit !== "text", has_answers: true },
});
const COLUMNS = [column("rank", "count"), column("step", "id"), column("cause", "text"), column("start_ns", "ns")];

test("names for programs read as words, and names of the job stay as they are", () => {
  expect([kindWords("scenario", "no_gaps"), kindWords("name", "my_op")]).toEqual(["no gaps", "my_op"]);
  expect(kindWords("cause", "host_sync")).toBe("host waits for the device");
  expect(kindWords("state", "unpaired")).toBe("free not seen");
  expect(kindWords("says", "24 × `aten::mm`")).toBe("24 × aten::mm");
});

test("what is typed as it is read finds what results have", () => {
  for (const [column, name] of [
    ["cause", "launch_bound"],
    ["cause", "input"],
    ["class", "dataloader"],
    ["scenario", "no_gaps"],
    ["state", "unpaired"],
    ["name", "my_op"],
  ] as const)
    expect(kindName(column, kindWords(column, name))).toBe(name);
});

test("a search finds values by the words that they are called", () => {
  expect(valuesCalled("Waits for the d")).toEqual(["host_sync"]);
  expect(valuesCalled("waiting for data")).toEqual(["input", "dataloader"]);
  expect([valuesCalled("gemm"), valuesCalled("")]).toEqual([[], []]);
});

test("a row that stands for others says so where others have their name", () => {
  const cells = (row: Record<string, string | number | null>) =>
    COLUMNS.map((column) => cellWords(column, row, COLUMNS, { cause: { input: "the loader" } }));
  const mean = { rank: 0, step: null, cause: null, start_ns: null, row: "mean" };
  expect([cells(mean), isSum(mean)]).toEqual([["0", "mean", "–", "–"], true]);
  const one = { rank: 0, step: 1_009, cause: "input", start_ns: 5, row: "one" };
  expect([cells(one), isSum(one)]).toEqual([["0", "1009", "the loader", "5 ns"], false]);
  expect(cells({ ...one, step: null, cause: "queue_wait" })).toEqual(["0", "–", "queued behind other work", "5 ns"]);
});

test("what has no value is called what that means", () => {
  const words = (row: Record<string, string | null>) =>
    COLUMNS.map((column) => cellWords(column, row, COLUMNS, { cause: { "": "nobody knows" } }));
  expect(words({ rank: null, step: null, cause: null, start_ns: null })).toEqual(["–", "–", "nobody knows", "–"]);
  expect(words({ rank: null, step: null, cause: "input", start_ns: null })[2]).toBe("waiting for data");
});

test("what a column is about has its values in words", () => {
  const doc = "`peak_rates`, or `full_device`.";
  const column = (name: string) =>
    ({ name, label: name, unit: "text", doc, is_right_aligned: false, has_answers: true }) as const;
  expect(docWords(column("gain_estimate"))).toBe("peak rates, or full device.");
  expect(docWords(column("name"))).toBe("peak_rates, or full_device.");
});
