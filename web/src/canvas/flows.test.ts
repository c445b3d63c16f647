import { expect, test } from "vitest";
import { arrowsOf, flowEnd } from "./flows";
import type { Slice, SliceDetails } from "./model";

const slice = (id: number): Slice => ({
  id,
  name: `s${id}`,
  kind: "op",
  class: "host_op",
  row: id,
  rank: 0,
  track: 0,
  start_ns: id,
  dur_ns: 1,
  is_unfinished: false,
});
const details = (more: Partial<SliceDetails>): SliceDetails => ({
  slice: slice(5),
  ancestors: [],
  children: 0,
  self_ns: 1,
  step: null,
  args: [],
  stack: [],
  op: null,
  launch: null,
  launched: [],
  module: [],
  flows: [],
  ...more,
});
const ends = (of: SliceDetails) => arrowsOf(of).map(({ from, to }) => [from.id, to.id]);

test("an arrow that is told twice is drawn once", () => {
  const flows = [
    { kind: "launch", direction: "in", slice: slice(1) },
    { kind: "forward_backward", direction: "out", slice: slice(9) },
  ] as const;
  expect(ends(details({ launch: slice(1), flows }))).toEqual([
    [1, 5],
    [5, 9],
  ]);
  const launches = details({
    launched: [slice(6), slice(7)],
    flows: [{ kind: "launch", direction: "out", slice: slice(6) }],
  });
  expect(ends(launches)).toEqual([
    [5, 6],
    [5, 7],
  ]);
  expect(arrowsOf(null)).toEqual([]);
});

test("arrows are followed both ways", () => {
  const of = details({ launch: slice(1), launched: [slice(8)] });
  expect(flowEnd(of, "forwards")?.id).toBe(8);
  expect(flowEnd(of, "backwards")?.id).toBe(1);
  expect(flowEnd(details({}), "forwards")).toBe(null);
});
