// Rows of a device that are made of results: how it is used and how much waits for it over time, and why it idles. They are
// asked for once they are on the screen, so that nothing waits for them.

import type { Envelope, Row } from "../../api/types";
import type { DataSource } from "../../canvas/data";
import type { Item } from "../../canvas/item_loader";
import type { CounterPart, TimelineGroup, TimelineRow } from "../../canvas/model";
import type { Span } from "../../canvas/view";
import { CLASSES, partLook } from "../../classes";
import type { Requests } from "../../components/timeline-shared/requests";

export const USE = "Utilization and SM efficiency";
export const QUEUE = "Queue length";
/** Of each device the server has the thousand longest, with their causes. */
export const GAPS = "Longest idle gaps, by cause";

/** A device as analyses name it. */
interface Device {
  readonly rank: number;
  readonly device: number;
}

/** What a row shows of a device. */
export interface DeviceRow extends Device {
  readonly name: typeof USE | typeof QUEUE | typeof GAPS;
}

/** Buckets of a curve that are asked for at most. */
const BUCKETS = 2000;
const GAPS_MAX = 1000;

/** The groups with these rows at the top of each device that runs anything, and the device of each row. */
export function withDeviceRows(groups: readonly TimelineGroup[]): {
  readonly groups: readonly TimelineGroup[];
  readonly devices: ReadonlyMap<number, DeviceRow>;
} {
  const devices = new Map<number, DeviceRow>();
  type Kind = TimelineRow["kind"];
  const rowOf = (of: Device, name: DeviceRow["name"], kind: Kind, unit: string | null): TimelineRow => {
    const id = -1 - devices.size;
    devices.set(id, { ...of, name });
    return { id, name, kind, depth: 0, slices: 0, unit, rank: of.rank, track: null };
  };
  const walk = (group: TimelineGroup): TimelineGroup => {
    const device = group.kind === "device" && group.summary !== null ? deviceOf(group) : null;
    const inner = group.groups.map(walk);
    if (!device) return { ...group, groups: inner };
    const use = rowOf(device, USE, "counter", "ratio");
    const queue = rowOf(device, QUEUE, "counter", "count");
    const gaps = rowOf(device, GAPS, "projected", null);
    const track = { name: GAPS, rank: group.rank, kind: "track", is_open: true, summary: null, groups: [] } as const;
    return { ...group, rows: [use, queue, ...group.rows], groups: [{ ...track, rows: [gaps] }, ...inner] };
  };
  return { groups: groups.map(walk), devices };
}

/** Groups of devices are called `GPU 0`, with the name of the model behind it. */
function deviceOf({ name, rank }: TimelineGroup): Device | null {
  const [, ordinal] = /^GPU (-?\d+)/.exec(name) ?? [];
  return ordinal === undefined ? null : { rank, device: Number(ordinal) };
}

/** Asks for what such rows show. */
export function deviceSource(requests: Requests, devices: ReadonlyMap<number, DeviceRow>): DataSource {
  return {
    ...requests.canvas,
    fetchItems: async (row, _window, signal) => {
      const device = devices.get(row);
      const items = device ? gapsOf(await requests.analysis("idle_gaps", gapsQuery(device), signal)) : [];
      return { items, isAll: true };
    },
    fetchCurves: (rows, window, _points, signal) =>
      Promise.all(
        rows.map(async (row) => {
          const device = devices.get(row);
          if (!device) return curveOf(row, null);
          const query = curveQuery(device, window);
          return device.name === QUEUE
            ? queueOf(row, await requests.analysis("queue_length_curve", query, signal))
            : curveOf(row, await requests.analysis("gpu_utilization_curve", query, signal));
        }),
      ),
  };
}

const of = ({ rank, device }: Device) =>
  [
    ["rank", rank],
    ["where", `device:eq:${device}`],
  ] as const;

const gapsQuery = (device: Device) => [...of(device), ["sort", "-start_ns"], ["limit", GAPS_MAX]] as const;

/** The buckets of a window: as wide as a power of ten, so that a little zoom asks for what is known already. */
export function curveQuery(device: Device, { start_ns, end_ns }: Span) {
  const bucket_ns = 10 ** Math.max(Math.ceil(Math.log10((end_ns - start_ns) / BUCKETS)), 0);
  return [
    ...of(device),
    ["bucket_ms", (bucket_ns / 1e6).toFixed(6)],
    ["where", `start_ns:ge:${Math.floor(start_ns - bucket_ns)}`],
    ["where", `start_ns:le:${Math.ceil(end_ns)}`],
    ["limit", 10_000],
  ] as const;
}

/** Gaps by start, in the colours and words of their causes. */
export function gapsOf({ results }: Envelope): Item[] {
  return results.map((row) => {
    const { colour, words } = partLook(String(row.cause));
    const host = row.host === null ? "" : `: ${row.host}`;
    const nth = (CLASSES as readonly string[]).indexOf(colour);
    return { ...placeOf(row), name: `${words}${host}`, class: Math.max(nth, 0) };
  });
}

const placeOf = (row: Row) => ({ start_ns: Number(row.start_ns), dur_ns: Number(row.idle_ns) });

/** The share of the time in which the device runs kernels, and beside it the share of its multiprocessors in use. */
export function curveOf(row: number, envelope: Envelope | null): CounterPart {
  const rows = envelope?.results ?? [];
  const values = numbersOf(rows, "utilization_ratio");
  return {
    row,
    ...timesOf(rows),
    min: values,
    max: values,
    last: values,
    beside: {
      own: "Utilization",
      other: "SM efficiency (estimated)",
      values: rows.map((row) => (row.sm_efficiency_ratio === null ? null : Number(row.sm_efficiency_ratio))),
    },
  };
}

/** How much waits for the device: the mean of each bucket, between the least and the greatest number. */
export function queueOf(row: number, { results }: Envelope): CounterPart {
  return {
    row,
    ...timesOf(results),
    min: numbersOf(results, "length_min"),
    max: numbersOf(results, "length_max"),
    last: numbersOf(results, "length_mean"),
  };
}

const numbersOf = (rows: readonly Row[], column: string) => rows.map((row) => Number(row[column]));

/** When the buckets begin, and when the last one ends. */
function timesOf(rows: readonly Row[]): Pick<CounterPart, "time_ns" | "end_ns"> {
  const last = rows.at(-1);
  return {
    time_ns: numbersOf(rows, "start_ns"),
    end_ns: last ? Number(last.start_ns) + Number(last.span_ns) : 0,
  };
}
