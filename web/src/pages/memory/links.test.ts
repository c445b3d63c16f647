import { expect, test } from "vitest";
import { allocationLinks } from "./links";

test("an allocation leads to its operator and to the moments of its life", () => {
  const row = { rank: 1, op: "aten::empty", op_start_ns: 5, allocated_ns: 7, freed_ns: 2n ** 60n };
  expect(allocationLinks(row).map((link) => link.href)).toEqual([
    "#timeline?at=5&at-rank=1&at-name=aten%3A%3Aempty",
    "#timeline?at=7&at-rank=1",
    "#timeline?at=1152921504606846976&at-rank=1",
  ]);
  expect(allocationLinks({ rank: 0, op: null, op_start_ns: null, allocated_ns: null, freed_ns: 0 })).toEqual([
    { label: "Its free", href: "#timeline?at=0&at-rank=0" },
  ]);
});
