// Ranks with their devices, and what `gpu_utilization` says of these.

import type { Num, Row, RunDetail } from "../../api/types";

/** A device of a rank, or a rank without one. */
export interface DeviceOfRank {
  readonly rank: number;
  readonly host: string | null;
  readonly process: string | null;
  readonly device: Num | null;
  readonly name: string | null;
  readonly memory_bytes: Num | null;
  /** How well it is used; nothing where no work of it was recorded. */
  readonly use: Row | undefined;
}

/** Every rank, or the one that was chosen, with each of its devices. */
export function devicesOf(detail: RunDetail, used: readonly Row[], rank: string | undefined): DeviceOfRank[] {
  const uses = new Map(used.map((row) => [`${row.rank} ${row.device}`, row]));
  // Of thousands of ranks, none looks through the devices of all.
  const ofRank = new Map<number, RunDetail["devices"][number][]>();
  for (const device of detail.devices) ofRank.set(device.rank, [...(ofRank.get(device.rank) ?? []), device]);
  const wanted = detail.ranks.filter((known) => rank === undefined || String(known.rank) === rank);
  return wanted.flatMap((known): DeviceOfRank[] => {
    const of = { rank: known.rank, host: known.host, process: known.name || null };
    const devices = ofRank.get(known.rank) ?? [];
    if (devices.length === 0) return [{ ...of, device: null, name: null, memory_bytes: null, use: undefined }];
    return devices.map(({ ordinal, name, memory_bytes }) => ({
      ...of,
      device: ordinal,
      name,
      memory_bytes,
      use: uses.get(`${known.rank} ${ordinal}`),
    }));
  });
}
