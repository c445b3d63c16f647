// Where the ruler has its marks, and what stands there: time since the start of the run.

import type { Span } from "./view";

/** A mark has at least this much room, in CSS pixels. */
const ROOM_PX = 100;

export interface Tick {
  readonly time_ns: number;
  readonly label: string;
}

const UNITS = [
  ["s", 1e9],
  ["ms", 1e6],
  ["us", 1e3],
  ["ns", 1],
] as const;

/** The distance between marks: 1, 2 or 5 times a power of ten of ns. */
export function tickStep(ns_per_px: number): number {
  const least = Math.max(ns_per_px * ROOM_PX, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].find((times) => times * power >= least * (1 - 1e-9)) ?? 10;
  return step * power;
}

/** The marks of a window, counted from `zero_ns` on. Their unit is that of their distance, so that neighbours differ in what is written. */
export function ticksOf(view: Span, width: number, zero_ns = 0): Tick[] {
  const step = tickStep((view.end_ns - view.start_ns) / Math.max(width, 1));
  const [unit, size] = UNITS.find(([, size]) => step >= size) ?? (["ns", 1] as const);
  const ticks: Tick[] = [];
  // Nothing is before the start of the run.
  const first = Math.ceil((Math.max(view.start_ns, 0) - zero_ns) / step);
  for (let at = first; at * step + zero_ns <= view.end_ns; at++) {
    ticks.push({ time_ns: at * step + zero_ns, label: `${grouped(Math.round((at * step) / size))} ${unit}` });
  }
  return ticks;
}

const grouped = (value: number) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");
