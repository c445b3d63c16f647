import { expect, test } from "vitest";
import type { Slice, TimelineGroup, TimelineRow } from "../../canvas/model";
import { Rows } from "../../components/timeline-shared/rows";
import { type EventOrder, type Events, eventRows, ordered, withNext } from "./events";

const row = (id: number, kind: TimelineRow["kind"], rank: number): TimelineRow => {
  return { id, name: `${id}`, kind, depth: 0, slices: 1, unit: null, rank, track: 0 };
};
const track = (name: string, rank: number, rows: TimelineRow[]): TimelineGroup => {
  return { name, rank, kind: "track", is_open: true, summary: null, groups: [], rows };
};
const GROUPS = [0, 1].map((rank): TimelineGroup => {
  const groups = [
    track("Stream 7", rank, [row(10 * rank + 1, "slices", rank), row(10 * rank + 2, "slices", rank)]),
    track("main", rank, [row(10 * rank + 3, "samples", rank), row(10 * rank + 4, "projected", rank)]),
    track("memory", rank, [row(10 * rank + 5, "counter", rank)]),
  ];
  return { ...track(`Rank ${rank}`, rank, []), kind: "rank", groups };
});
const NOTHING = { open: [], shut: [], pins: [] };
const rowsOf = (dragged: readonly number[], rank: number | null, filter = "") => {
  const rows = new Rows(
    GROUPS,
    () => NOTHING,
    () => rank,
    () => {},
    () => filter,
  );
  return eventRows(rows, dragged);
};

test("events are of slices and samples: of the rows that were dragged over, of the rank, of the tracks that are kept", () => {
  expect(rowsOf([], null)).toEqual([1, 2, 3, 11, 12, 13]);
  expect(rowsOf([], 1)).toEqual([11, 12, 13]);
  expect(rowsOf([2, 4, 5, 12], null)).toEqual([2, 12]);
  expect(rowsOf([], null, "stream")).toEqual([1, 2, 11, 12]);
});

test("answers are put together to all events, of however many rows, each once", async () => {
  // Every row has an event each 10 ns that lasts 25, and two begin at the same time.
  const of = (row: number) =>
    Array.from({ length: 20 }, (_, nth) => ({ id: row * 100 + nth, start_ns: (nth >> 1) * 10, dur_ns: 25 }) as Slice);
  const list = async (rows: readonly number[], window: { start_ns: number; end_ns: number }, limit: number) =>
    rows
      .flatMap(of)
      .filter(({ start_ns, dur_ns }) => start_ns + dur_ns > window.start_ns && start_ns < window.end_ns)
      .sort((one, other) => one.start_ns - other.start_ns || one.id - other.id)
      .slice(0, limit);
  for (const count of [1, 3, 1600]) {
    const rows = Array.from({ length: count }, (_, nth) => nth);
    const range = { start_ns: 15, end_ns: 60 };
    let known: Events = { events: [], isAll: false };
    let answers = 0;
    for (; !known.isAll; answers++) known = await withNext(known, list, rows, range, count * 7);
    expect(known.events).toEqual(await list(rows, range, Number.POSITIVE_INFINITY));
    expect(answers).toBeGreaterThan(1);
  }
});

test("events are by start, by duration or by name", () => {
  const events = [
    ["b", 5],
    ["a", 7],
    ["b", 7],
  ].map(([name, dur_ns], id) => ({ id, name, dur_ns }) as unknown as Slice);
  const ids = (order: EventOrder) => ordered(events, order).map(({ id }) => id);
  expect([ids("start"), ids("longest first"), ids("name")]).toEqual([
    [0, 1, 2],
    [1, 2, 0],
    [1, 0, 2],
  ]);
});
