import { expect, test } from "vitest";
import { inOrder, type Mark, noted, toggled, unmarked } from "./marks";

const MARKS: readonly Mark[] = [
  { time_ns: 50, note: "late" },
  { time_ns: 10, note: "" },
];
const told = (marks: readonly Mark[]) => marks.map(({ time_ns, note }) => `${time_ns} ${note}`.trim());

test("a mark is set where there is none, and taken away where there is one", () => {
  expect(told(toggled(MARKS, 20.4, 4))).toEqual(["50 late", "10", "20"]);
  expect(told(toggled(MARKS, 53, 4))).toEqual(["10"]);
  expect(told(toggled([], -3, 4))).toEqual(["0"]);
});

test("a note is of one mark, and marks are numbered by time", () => {
  expect(told(inOrder(noted(MARKS, 10, "early")))).toEqual(["10 early", "50 late"]);
  expect(told(unmarked(MARKS, 50))).toEqual(["10"]);
  expect(told(MARKS)).toEqual(["50 late", "10"]);
});
