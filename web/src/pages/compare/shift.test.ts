import { expect, test } from "vitest";
import { LEGEND, ratioOf, shiftOf } from "./shift";

const look = (ratio: number | null, runs = "both") => {
  const shift = shiftOf({ runs, change_host_total_ratio: ratio }, "host_total_ns");
  return `${shift.look} ${shift.texture} ${shift.words}`;
};

test("a change has a look, a texture and words", () => {
  expect([0, 0.0199, 0.02, 0.1, 0.3, 12].map((ratio) => look(ratio))).toEqual([
    "shift-same null 0.0 %",
    "shift-same null +2.0 %",
    "shift-more-1 rising +2.0 %",
    "shift-more-2 rising +10.0 %",
    "shift-more-3 rising +30.0 %",
    "shift-more-3 rising +1200.0 %",
  ]);
  expect([-0.01, -0.05, -0.2, -1].map((ratio) => look(ratio))).toEqual([
    "shift-same null -1.0 %",
    "shift-less-1 dots -5.0 %",
    "shift-less-2 dots -20.0 %",
    "shift-less-3 dots -100.0 %",
  ]);
});

test("what is not known is no change", () => {
  expect([look(null), look(null, "a"), look(null, "b")]).toEqual([
    "shift-same null –",
    "shift-same null gone",
    "shift-new cross new",
  ]);
});

test("every look is in the legend", () => {
  const looks = new Set(LEGEND.map(({ look }) => look));
  for (const ratio of [-2, -0.2, -0.05, 0, 0.05, 0.2, 2]) {
    expect(looks).toContain(shiftOf({ runs: "both", change_a_ratio: ratio }, "a_ns").look);
  }
  expect([ratioOf("allocated_bytes"), ratioOf("total_ns")]).toEqual(["change_allocated_ratio", "change_total_ratio"]);
});
