import { expect, test } from "vitest";
import {
  formatTimeline,
  isLargeMove,
  type Params,
  parseSpan,
  parseTimeline,
  type TimelineParams,
} from "./timeline_params";

const SHOWN: TimelineParams = {
  view: { start_ns: -20, end_ns: 9_007_199_254_740_991 },
  at: { start_ns: 17, rank: 3, name: "void f<int, 4>(float*) & =#? 日本" },
  range: { start_ns: 1, end_ns: 1 },
  rangeRows: ["Rank%200/GPU/Stream%207 0-3", "a b"],
  marks: [
    { time_ns: 0, note: "" },
    { time_ns: 5, note: "7:<b>&=#?\n 日本" },
    { time_ns: 17, note: "" },
  ],
  pins: ["Rank%200/GPU/Stream 7#2"],
  open: ["a", "b/c"],
  shut: ["d"],
  search: "gemm",
  tracks: "stream 7",
};

const params = (changes: ReturnType<typeof formatTimeline>): Params =>
  Object.entries(changes).flatMap(([name, value]) => {
    const values = value === null ? [] : typeof value === "string" ? [value] : value;
    return values.map((value) => [name, value] as const);
  });

test("what is shown comes back from its address", () => {
  expect(parseTimeline(params(formatTimeline(SHOWN)))).toEqual(SHOWN);
  const nothing = {
    view: null,
    at: null,
    range: null,
    rangeRows: [],
    marks: [],
    pins: [],
    open: [],
    shut: [],
    search: "",
    tracks: "",
  };
  expect(parseTimeline(params(formatTimeline(nothing)))).toEqual(nothing);
  const bare = { ...nothing, at: { start_ns: 4, rank: null, name: null } };
  expect(parseTimeline(params(formatTimeline(bare)))).toEqual(bare);
});

test("another range is of all rows unless it says of which", () => {
  expect(formatTimeline({ range: { start_ns: 1, end_ns: 2 } })).toEqual({ range: "1-2", "range-row": null });
  expect(formatTimeline({ range: null })).toEqual({ range: null, "range-row": null });
});

test("what makes no sense is left out", () => {
  const odd = ["", "-", "5", "9-5", "1e3-1e4", "a-b", "99999999999999999-5", "NaN-NaN", "1-99999999999999999999"];
  for (const text of odd) expect(parseSpan(text)).toBe(null);
  const marks = ["-1", "x", "1.5", "7", "x:7", "8:", ":9"].map((text) => ["mark", text] as const);
  expect(parseTimeline([...marks, ["at", "x"], ["at-name", "y"]])).toMatchObject({
    marks: [
      { time_ns: 7, note: "" },
      { time_ns: 8, note: "" },
    ],
    at: null,
  });
});

test("an address with a great many marks is cut", () => {
  const many = Array.from({ length: 5000 }, (_, at) => ["mark", String(at)] as const);
  expect(parseTimeline(many).marks).toHaveLength(1000);
  expect(parseTimeline([["mark", `4:${"x".repeat(9_000)}`]]).marks[0]?.note).toHaveLength(200);
});

test("only what is changed is written", () => {
  expect(formatTimeline({ search: "" })).toEqual({ q: null });
});

test("Back has a step for large moves only", () => {
  const before = { start_ns: 100, end_ns: 200 };
  expect(isLargeMove(before, { start_ns: 110, end_ns: 210 })).toBe(false);
  expect(isLargeMove(before, { start_ns: 160, end_ns: 260 })).toBe(true);
  expect(isLargeMove(before, { start_ns: 125, end_ns: 175 })).toBe(true);
  expect(isLargeMove(before, { start_ns: 105, end_ns: 195 })).toBe(false);
});
