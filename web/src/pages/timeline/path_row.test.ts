import { expect, test } from "vitest";
import type { Envelope, Row } from "../../api/types";
import type { TimelineGroup } from "../../canvas/model";
import { CLASSES } from "../../classes";
import { linkOf, PATH, pathOf, piecesOfRange, piecesQuery, stepPaths, withPathRows } from "./path_row";

const group = (
  kind: TimelineGroup["kind"],
  rank: number,
  summary: number | null,
  groups: TimelineGroup[] = [],
): TimelineGroup => ({ name: kind, rank, kind, is_open: true, summary, groups, rows: [] });

const envelope = (results: Row[], matching = results.length) =>
  ({ results, page: { matching } }) as unknown as Envelope;

const step = (step: number, start_ns: number, length_ns: number) => ({ step, start_ns, length_ns });
const piece = (step: number, start_ns: number, end_ns: number, name: string | null, className = "compute") => ({
  rank: 3,
  step,
  start_ns,
  end_ns,
  pieces: 1,
  class: className,
  class_ns: end_ns - start_ns,
  name,
  slice_start_ns: name === null ? null : start_ns - 1,
});

const drawn = (items: ReturnType<typeof pathOf>["items"]) =>
  items.map(({ start_ns, dur_ns, name }) => `${start_ns} for ${dur_ns}: ${name}`);

test("ranks with a device that runs anything have a row of their path", () => {
  const { groups, ranks } = withPathRows(
    [
      group("rank", 0, 3, [group("device", 0, 7), group("threads", 0, 9)]),
      group("rank", 2, 3, [group("device", 2, null), group("threads", 2, 9)]),
      group("rank", 4, null, [group("threads", 4, 1), group("device", 4, 8)]),
    ],
    6,
  );
  expect(groups.map(({ groups }) => groups.map(({ name }) => name))).toEqual([
    [PATH, "device", "threads"],
    ["device", "threads"],
    [PATH, "threads", "device"],
  ]);
  expect([...ranks]).toEqual([
    [-7, 0],
    [-8, 4],
  ]);
});

test("pieces have the colours and words of their classes, and lead to their slices", () => {
  const pieces = [piece(0, 10, 20, null, "other"), piece(0, 20, 30, "k")];
  const { items, isAll } = pathOf(stepPaths(envelope([step(0, 10, 20)])), envelope(pieces));
  expect(isAll).toBe(true);
  expect(items).toEqual([
    { start_ns: 10, dur_ns: 10, class: 0, name: "outside of operators" },
    {
      start_ns: 20,
      dur_ns: 10,
      class: CLASSES.indexOf("compute"),
      name: "compute: k",
      link: { start_ns: 19, rank: 3, name: "k" },
    },
  ]);
});

test("where paths of steps overlap, the earlier one is drawn to its end", () => {
  const steps = stepPaths(envelope([step(0, 0, 30), step(1, 10, 40), step(2, 15, 10)]));
  const pieces = [piece(1, 10, 25, "a"), piece(1, 25, 50, "b"), piece(0, 0, 30, "a"), piece(2, 15, 25, "c")];
  expect(drawn(pathOf(steps, envelope(pieces)).items)).toEqual(["0 for 30: compute: a", "30 for 20: compute: b"]);
});

test("where pieces stand together, it is said how many there are, and of which class most is", () => {
  const steps = stepPaths(envelope([step(0, 0, 30)]));
  const together = { ...piece(0, 0, 20, "a"), pieces: 7, class_ns: 12 };
  const { items, isAll } = pathOf(steps, envelope([together, piece(0, 20, 30, null, "other")]));
  expect(isAll).toBe(false);
  expect(items.map(({ name, count }) => [name, count])).toEqual([
    ["most of it compute, 12 ns: a", 7],
    ["outside of operators", undefined],
  ]);
});

test("buckets are a power of four wide, half a pixel to three of what is shown", () => {
  const paths = stepPaths(envelope([step(0, 0, 1e9)]));
  const query = (window: { start_ns: number; end_ns: number } | null) =>
    piecesQuery(2, paths, window).map(([name, value]) => `${name}=${value}`);
  expect(query({ start_ns: 0, end_ns: 3e6 })).toEqual([
    "rank=2",
    "bucket_ms=0.001024",
    "where=end_ns:ge:0",
    "where=start_ns:le:3000000",
    "sort=-start_ns",
    "limit=10000",
  ]);
  expect(query(null)).toEqual(["rank=2", "bucket_ms=1.048576", "sort=-start_ns", "limit=10000"]);
  expect(query({ start_ns: 5, end_ns: 10 })[1]).toBe("bucket_ms=0.000001");
});

test("a table asks for each piece of a range, and leads to slices where there are some", () => {
  expect(piecesOfRange(3, { start_ns: 10.5, end_ns: 20.5 })).toEqual([
    ["rank", 3],
    ["where", "end_ns:gt:10"],
    ["where", "start_ns:lt:21"],
    ["sort", "-start_ns"],
    ["limit", 1000],
  ]);
  expect(linkOf(piece(1, 10, 20, "aten::mm"))).toEqual({ start_ns: 9, rank: 3, name: "aten::mm" });
  expect(linkOf(piece(1, 10, 20, null))).toBe(null);
});
