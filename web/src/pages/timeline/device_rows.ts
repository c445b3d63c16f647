// Rows of a device that are made of results: how it is used over time, and why it idles. They are asked for once they are
// on the screen, so that nothing waits for them.

import type { Envelope, Row } from "../../api/types";
import type { DataSource } from "../../canvas/data";
import type { Item } from "../../canvas/item_loader";
import type { CounterPart, TimelineGroup, TimelineRow } from "../../canvas/model";
import type { Span } from "../../canvas/view";
import { CLASSES, partLook } from "../../classes";
import type { Requests } from "../../components/timeline-shared/requests";

export const USE = "Utilization and SM efficiency";
/** Of each device the server has the thousand longest, with their causes. */
export const GAPS = "Longest idle gaps, by cause";

/** A device as analyses name it. */
interface Device {
  readonly rank: number;
  readonly device: number;
}

/** Buckets of a curve that are asked for at most. */
const BUCKETS = 2000;
const GAPS_MAX = 1000;

/** The groups with these rows at the top of each device that runs anything, and the device of each row. */
export function withDeviceRows(groups: readonly TimelineGroup[]): {
  readonly groups: readonly TimelineGroup[];
  readonly devices: ReadonlyMap<number, Device>;
} {
  const devices = new Map<number, Device>();
  const rowOf = (of: Device, name: string, kind: TimelineRow["kind"], unit: string | null): TimelineRow => {
    const id = -1 - devices.size;
    devices.set(id, of);
    return { id, name, kind, depth: 0, slices: 0, unit, rank: of.rank, track: null };
  };
  const walk = (group: TimelineGroup): TimelineGroup => {
    const device = group.kind === "device" && group.summary !== null ? deviceOf(group) : null;
    const inner = group.groups.map(walk);
    if (!device) return { ...group, groups: inner };
    const use = rowOf(device, USE, "counter", "ratio");
    const gaps = rowOf(device, GAPS, "projected", null);
    const track = { name: GAPS, rank: group.rank, kind: "track", is_open: true, summary: null, groups: [] } as const;
    return { ...group, rows: [use, ...group.rows], groups: [{ ...track, rows: [gaps] }, ...inner] };
  };
  return { groups: groups.map(walk), devices };
}

/** Groups of devices are called `GPU 0`, with the name of the model behind it. */
function deviceOf({ name, rank }: TimelineGroup): Device | null {
  const [, ordinal] = /^GPU (-?\d+)/.exec(name) ?? [];
  return ordinal === undefined ? null : { rank, device: Number(ordinal) };
}

/** Asks for what such rows show. */
export function deviceSource(requests: Requests, devices: ReadonlyMap<number, Device>): DataSource {
  return {
    ...requests.canvas,
    fetchItems: async (row, signal) => {
      const device = devices.get(row);
      return device ? gapsOf(await requests.analysis("idle_gaps", gapsQuery(device), signal)) : [];
    },
    fetchCurves: (rows, window, _points, signal) =>
      Promise.all(
        rows.map(async (row) => {
          const device = devices.get(row);
          const query = device && curveQuery(device, window);
          return curveOf(row, query ? await requests.analysis("gpu_utilization_curve", query, signal) : null);
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
  const values = rows.map((row) => Number(row.utilization_ratio));
  const last = rows.at(-1);
  return {
    row,
    time_ns: rows.map((row) => Number(row.start_ns)),
    min: values,
    max: values,
    last: values,
    beside: {
      own: "Utilization",
      other: "SM efficiency (estimated)",
      values: rows.map((row) => (row.sm_efficiency_ratio === null ? null : Number(row.sm_efficiency_ratio))),
    },
    end_ns: last ? Number(last.start_ns) + Number(last.span_ns) : 0,
  };
}
