import { expect, test } from "vitest";
import type { Envelope, Row } from "../../api/types";
import type { TimelineGroup } from "../../canvas/model";
import { CLASSES } from "../../classes";
import { curveOf, curveQuery, GAPS, gapsOf, QUEUE, queueOf, USE, withDeviceRows } from "./device_rows";

const group = (
  kind: TimelineGroup["kind"],
  name: string,
  rank: number,
  summary: number | null,
  groups: TimelineGroup[] = [],
): TimelineGroup => ({ name, rank, kind, is_open: true, summary, groups, rows: [] });

const envelope = (results: Row[]) => ({ results }) as unknown as Envelope;

test("devices that run something have rows of their use, and each row knows its device", () => {
  const { groups, devices } = withDeviceRows([
    group("rank", "Rank 0", 0, 3, [
      group("device", "GPU 0 · H100 80GB", 0, 7),
      group("device", "GPU 1", 0, null),
      group("threads", "GPU 2", 0, 9),
    ]),
    group("rank", "Rank 4", 4, null, [group("device", "GPU 12", 4, 8)]),
  ]);
  const made = groups.flatMap(({ groups }) =>
    groups.map((device) => [
      ...device.rows.map(({ name, id }) => [name, devices.get(id)]),
      ...device.groups.flatMap(({ rows }) => rows.map(({ name, id }) => [name, devices.get(id)])),
    ]),
  );
  const [first, other] = [
    { rank: 0, device: 0 },
    { rank: 4, device: 12 },
  ];
  const rows = (device: object) => [USE, QUEUE, GAPS].map((name) => [name, { ...device, name }]);
  expect(made).toEqual([rows(first), [], [], rows(other)]);
  expect([...devices.keys()].every((id) => id < 0)).toBe(true);
});

test("buckets are a power of ten wide, in a window and the one that it begins in", () => {
  const query = (start_ns: number, end_ns: number) =>
    curveQuery({ rank: 1, device: 2 }, { start_ns, end_ns }).map(([name, value]) => `${name}=${value}`);
  expect(query(1e9, 3e9)).toEqual([
    "rank=1",
    "where=device:eq:2",
    "bucket_ms=1.000000",
    "where=start_ns:ge:999000000",
    "where=start_ns:le:3000000000",
    "limit=10000",
  ]);
  expect(query(0, 2.1e9)[2]).toBe("bucket_ms=10.000000");
  expect(query(0, 100)[2]).toBe("bucket_ms=0.000001");
});

test("a curve ends with its last bucket, and what is not known of it is no 0", () => {
  const row = (start_ns: number, span_ns: number, used: number, full: number | null) => ({
    start_ns,
    span_ns,
    utilization_ratio: used,
    sm_efficiency_ratio: full,
  });
  expect(curveOf(-1, envelope([row(0, 10, 0.5, null), row(10, 4, 1, 0.25)]))).toMatchObject({
    time_ns: [0, 10],
    last: [0.5, 1],
    beside: { values: [null, 0.25] },
    end_ns: 14,
  });
  expect(curveOf(-1, null).time_ns).toEqual([]);
});

test("a queue has the mean of each bucket between its least and greatest lengths", () => {
  const row = { start_ns: 20, span_ns: 10, length_mean: 1.5, length_min: 0, length_max: 7 };
  expect(queueOf(-2, envelope([row]))).toEqual({
    row: -2,
    time_ns: [20],
    min: [0],
    max: [7],
    last: [1.5],
    end_ns: 30,
  });
});

test("gaps have the words and the colour of their causes", () => {
  const row = (cause: string, host: string | null) => ({ start_ns: 5, idle_ns: 3, cause, host });
  expect(gapsOf(envelope([row("input", "next"), row("unknown", null)]))).toEqual([
    { start_ns: 5, dur_ns: 3, name: "waiting for data: next", class: CLASSES.indexOf("input") },
    { start_ns: 5, dur_ns: 3, name: "not known", class: 0 },
  ]);
});
