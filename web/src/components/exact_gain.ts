import type { Advice } from "../api/types";
import { exactCell } from "../format/cell";

/** The ends of a gain with all digits, and what it rests on. */
export function exactGain({ gain_low_ns, gain_high_ns, gain_method }: Advice): string {
  if (gain_low_ns === null) return "";
  const low = exactCell("ns", gain_low_ns);
  const range = gain_high_ns === null ? `${low} or more` : `${low} to ${exactCell("ns", gain_high_ns)}`;
  return gain_method === null ? range : `${range}: ${gain_method}`;
}
