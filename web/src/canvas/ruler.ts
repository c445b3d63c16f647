// Where the ruler has its marks, and what stands there: time since the start of the run.

import type { Span } from "./view";

/** A mark has at least this much room, in CSS pixels. */
const ROOM_PX = 100;

export interface Tick {
  readonly time_ns: number;
  readonly label: string;
}

/** The marks of a window, and what is added to each where their labels would be long: it is said once. */
export interface Ticks {
  readonly base: string | null;
  readonly ticks: readonly Tick[];
}

const UNITS = [
  ["s", 1e9],
  ["ms", 1e6],
  ["µs", 1e3],
  ["ns", 1],
] as const;

/** From this many units of the labels on the time is told in two parts. */
const LONG = 10_000;

/** The distance between marks: 1, 2 or 5 times a power of ten of ns. */
export function tickStep(ns_per_px: number): number {
  const least = Math.max(ns_per_px * ROOM_PX, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].find((times) => times * power >= least * (1 - 1e-9)) ?? 10;
  return step * power;
}

/** A time at a mark, in the unit of the distance between marks, so that neighbours differ in what is written. */
export function tickLabel(ns: number, step: number): string {
  const [unit, size] = unitOf(step);
  return `${grouped(Math.round(ns / size))} ${unit}`;
}

/** Times at the marks of an axis: in a larger unit where the numbers would be long, with the digits in which they differ. */
export function axisLabels(times: readonly number[], step: number): string[] {
  const [, size] = unitOf(step);
  const larger = UNITS.find(([, of]) => of === 1e3 * size);
  if (!larger || times.every((ns) => Math.abs(ns) < LONG * size)) return times.map((ns) => tickLabel(ns, step));
  const [unit, of] = larger;
  const digits = Math.ceil(Math.log10(of / step) - 1e-9);
  return times.map((ns) => {
    const [whole = "", rest] = (ns / of).toFixed(digits).split(".");
    return `${grouped(Number(whole))}${rest ? `.${rest}` : ""} ${unit}`;
  });
}

/** The marks of a window, counted from `zero_ns` on. */
export function ticksOf(view: Span, width: number, zero_ns = 0): Ticks {
  const step = tickStep((view.end_ns - view.start_ns) / Math.max(width, 1));
  const [, size] = unitOf(step);
  // Nothing is before the start of the run.
  const first = Math.ceil((Math.max(view.start_ns, 0) - zero_ns) / step);
  const last = Math.floor((view.end_ns - zero_ns) / step);
  const isLong = size < 1e9 && Math.max(Math.abs(first), Math.abs(last)) * step >= LONG * size;
  const base = isLong ? Math.floor((first * step) / (1e3 * size)) * 1e3 * size : 0;
  const ticks: Tick[] = [];
  for (let at = first; at <= last; at++) {
    const label = tickLabel(at * step - base, step);
    ticks.push({ time_ns: at * step + zero_ns, label: isLong ? `+${label}` : label });
  }
  return { base: isLong ? baseLabel(base, 1e3 * size) : null, ticks };
}

/** A multiple of `size`, every digit of it: in the next larger unit where it has one and reaches it. */
function baseLabel(ns: number, size: number): string {
  const larger = Math.abs(ns) >= 1e3 * size && size < 1e9 ? 1e3 * size : size;
  const [unit] = unitOf(larger);
  const thousandths = Math.round((Math.abs(ns) / larger) * 1e3);
  const rest = String(thousandths % 1e3).padStart(3, "0");
  const whole = grouped(Math.floor(thousandths / 1e3));
  return `${ns < 0 ? "-" : ""}${whole}${larger > size ? `.${rest}` : ""} ${unit}`;
}

const unitOf = (step: number) => UNITS.find(([, size]) => step >= size) ?? (["ns", 1] as const);

const grouped = (value: number) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");
