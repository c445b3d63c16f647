// The memories of a run: one a device, and one for the host of each rank. A row of `memory_summary` is one of them.

import type { Cell, Num, Row } from "../api/types";

/** One memory, as it stands in the address: `RANK/DEVICE`, or `RANK/host`. */
export interface Memory {
  readonly id: string;
  readonly rank: string;
  /** The device's number; null for the host. */
  readonly device: string | null;
  readonly peak_ns: Num;
}

/** The memories that `rows` are of, in their order. */
export function memoriesOf(rows: readonly Row[]): Memory[] {
  return rows.map((row) => {
    const [rank, device] = [String(row.rank), row.device === null ? null : String(row.device)];
    return { id: `${rank}/${device ?? "host"}`, rank, device, peak_ns: row.peak_ns as Num };
  });
}

/** The one that was asked for; else the device whose peak is the highest, and the host only where there is no device. */
export function chosenMemory(rows: readonly Row[], asked: string | undefined): Memory | undefined {
  const memories = memoriesOf(rows);
  const found = memories.find((memory) => memory.id === asked);
  if (found) return found;
  const peak = (at: number): Cell => rows[at]?.peak_bytes ?? 0;
  const devices = memories.flatMap((memory, at) => (memory.device === null ? [] : [at]));
  const fullest = devices.reduce<number>(
    (best, at) => ((peak(at) ?? 0) > (peak(best) ?? 0) ? at : best),
    devices[0] ?? 0,
  );
  return memories[fullest];
}

/** What a person calls it. */
export function memoryWords(memory: Memory, hasRanks: boolean): string {
  const what = memory.device === null ? "host" : `device ${memory.device}`;
  return hasRanks ? `rank ${memory.rank}, ${what}` : what;
}

/** The conditions that its rows meet. */
export const conditionsOf = ({ rank, device }: Memory): string[] => [`rank:eq:${rank}`, `device:eq:${device ?? ""}`];
