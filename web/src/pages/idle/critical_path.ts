// The mean critical path of steps.

import type { Breakdown, Row } from "../../api/types";

/** Columns of the analysis, and the parts that they are drawn as. */
const PARTS = [
  ["compute_ns", "compute"],
  ["comm_ns", "comm"],
  ["copy_ns", "copy"],
  ["launch_latency_ns", "launch_latency"],
  ["queue_wait_ns", "queue_wait"],
  ["host_sync_ns", "host_sync"],
  ["dataloader_ns", "dataloader"],
  ["runtime_ns", "runtime"],
  ["host_op_ns", "cpu"],
  ["other_ns", "other"],
] as const;

/** The parts of the mean step, the longest first; of steps that were recorded whole, if there is one. Null without steps. */
export function criticalPath(rows: readonly Row[]): { breakdown: Breakdown; steps: number } | null {
  const whole = rows.filter((row) => row.is_complete === true);
  const steps = whole.length > 0 ? whole : rows;
  if (steps.length === 0) return null;
  const sums = PARTS.map(([column, part]) => ({
    part,
    ns: steps.reduce((sum, row) => sum + Number(row[column] ?? 0), 0),
  }));
  const total = sums.reduce((sum, { ns }) => sum + ns, 0);
  if (total === 0) return null;
  const parts = sums.filter(({ ns }) => ns > 0).sort((one, other) => other.ns - one.ns);
  return {
    steps: steps.length,
    breakdown: {
      total_ns: Math.round(total / steps.length),
      parts: parts.map(({ part, ns }) => ({ class: part, ns: Math.round(ns / steps.length), ratio: ns / total })),
    },
  };
}
