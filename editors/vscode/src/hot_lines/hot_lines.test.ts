import { expect, test } from "vitest";
import { recordedMsIn, whyStale } from "./freshness";
import { atLeast, hotLinesOf } from "./hot_lines";
import { detailWords, lineWords } from "./words";

const result = (analysis: string, results: readonly unknown[]) =>
  JSON.stringify({ schema: "stepscope/1", analysis, results });
const row = (
  file: string | null,
  line: number | null,
  host: readonly number[],
  device: readonly number[] = [0, 0],
) => ({
  file,
  line,
  function: file && "f",
  count: 3,
  host_total_ns: host[0],
  host_self_ns: host[1],
  device_total_ns: device[0],
  device_self_ns: device[1],
});
const ON_HOST = result("source_lines", [
  row("a.py", 1, [90e6, 10e6]),
  row("a.py", 7, [80e6, 80e6]),
  row(null, null, [10e6, 10e6]),
]);
const STEPS = result("step_breakdown", [{ row: "one" }, { row: "one" }, { row: "mean" }]);

test("a line's share is of the time of all operators, those without a file too", () => {
  const hot = hotLinesOf(ON_HOST);
  expect(hot.lines.map(({ line, share }) => [line, share])).toEqual([
    [1, 0.9],
    [7, 0.8],
  ]);
  expect([hot.isDevice, hot.steps]).toEqual([false, 0]);
});

test("the time of devices counts where there is any", () => {
  const rows = [row("a.py", 1, [90, 90], [0, 0]), row("a.py", 2, [5, 5], [40, 30]), row("a.py", 3, [5, 5], [10, 10])];
  const hot = hotLinesOf(result("source_lines", rows));
  expect(hot.isDevice).toBe(true);
  expect(hot.lines.map(({ line, share }) => [line, share])).toEqual([
    [2, 1],
    [3, 0.25],
    [1, 0],
  ]);
});

test("functions on one line are not added up", () => {
  const rows = [row("a.py", 5, [60, 0]), row("a.py", 5, [80, 20]), row("b.py", 5, [80, 80])];
  const lines = hotLinesOf(result("source_lines", rows)).lines;
  expect(lines.map(({ file, line, totalNs }) => [file, line, totalNs])).toEqual([
    ["a.py", 5, 80],
    ["b.py", 5, 80],
  ]);
});

test("below the threshold nothing is shown", () => {
  const hot = hotLinesOf(
    result("source_lines", [row("a.py", 1, [99, 99]), row("a.py", 2, [1, 1]), row("a.py", 3, [0, 0])]),
  );
  expect(atLeast(hot, 0.02).lines.map(({ line }) => line)).toEqual([1]);
  expect(atLeast(hot, 0).lines.map(({ line }) => line)).toEqual([1, 2]);
});

test("words say share and time, of a step where steps are known", () => {
  const [whole, stepped] = [hotLinesOf(ON_HOST), hotLinesOf(ON_HOST, STEPS)];
  const [line] = whole.lines;
  if (!line) throw new Error("no line");
  expect(lineWords(line, whole)).toBe("90 % · 90.0 ms");
  expect(lineWords(line, stepped)).toBe("90 % · 45.0 ms/step");
  expect(lineWords({ ...line, share: 0.0123 }, whole)).toBe("1.2 % · 90.0 ms");
  expect(detailWords(line, stepped)).toEqual([
    "90 % of the time of all operators",
    "host time of what is called from here: 90.0 ms, directly 10.0 ms",
    "operators called directly: 3",
    "steps of all ranks: 2",
  ]);
});

test("what is no result says what to do", () => {
  for (const text of ["", "[]", "null", '{"analysis":"operators","results":[]}', '{"analysis":"source_lines"}'])
    expect(() => hotLinesOf(text)).toThrow(/source_lines/);
});

test("a file that is newer than the run, or edited, is another one", () => {
  expect(whyStale({ recordedMs: 10, changedMs: 9, isEdited: false })).toBeNull();
  expect(whyStale({ recordedMs: 10, changedMs: 10, isEdited: false })).toBeNull();
  expect(whyStale({ recordedMs: 10, changedMs: 11, isEdited: false })).toContain("after the run");
  expect(whyStale({ recordedMs: 10, changedMs: 9, isEdited: true })).toContain("edited");
});

test("a run's folder says when it began", () => {
  expect(recordedMsIn('{"format":"stepscope-run","created_unix_ns":1795336189076596371}')).toBeCloseTo(
    1795336189076.6,
    0,
  );
  for (const text of ["", "[]", "null", '{"format":"other","created_unix_ns":1}', '{"format":"stepscope-run"}'])
    expect(recordedMsIn(text)).toBeNull();
});
