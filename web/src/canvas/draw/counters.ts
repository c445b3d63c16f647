// Values over time: a line of steps with the ground below it filled, and a band where several samples share a part.

import { formatBytes, formatBytesPerS, formatCount, formatPlain, formatRatio } from "../../format/units";
import type { CounterPart } from "../model";
import type { Placed, Scene } from "../scene";
import type { Span } from "../view";

/** A counter's value in its unit. */
export function counterText(value: number, unit: string | null): string {
  if (unit === "bytes") return formatBytes(Math.round(value));
  if (unit === "bytes/s") return formatBytesPerS(Math.round(value));
  if (unit === "ratio") return formatRatio(value);
  if (unit === "mW") return counterText(Math.round(value / 1000), "W");
  const number = Number.isInteger(value) ? formatCount(value) : formatPlain(value);
  return unit === null || unit === "count" ? number : `${number} ${unit}`;
}

/** The lowest and highest value of the samples that a window shows; 0 is always among them, so that heights compare. */
export function rangeOf(part: CounterPart, view: Span): { low: number; high: number } {
  let low = 0;
  let high = 0;
  const first = Math.max(sampleAt(part.time_ns, view.start_ns), 0);
  for (let at = first; at < part.time_ns.length && (part.time_ns[at] ?? 0) <= view.end_ns; at++) {
    low = Math.min(low, part.min[at] ?? 0);
    high = Math.max(high, part.max[at] ?? 0);
  }
  return { low, high: high > low ? high : low + 1 };
}

/** The index of the last sample at or before a time; -1 before the first. */
export function sampleAt(times: readonly number[], time_ns: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((times[middle] ?? 0) <= time_ns) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

type Point = readonly [x: number, y: number];

/** A path along points. */
function trace(context: Scene["context"], points: readonly Point[]): void {
  context.beginPath();
  points.forEach(([x, y], at) => {
    if (at === 0) context.moveTo(x, y);
    else context.lineTo(x, y);
  });
}

/** Draws the lines of counters that are on the screen. */
export function drawCounters(scene: Scene, lines: readonly Placed[]): void {
  for (const { line, top } of lines) {
    if (line.row === null || line.kind !== "counter") continue;
    const part = scene.counters.get(line.row);
    if (!part || part.time_ns.length === 0) continue;
    const { low, high } = rangeOf(part, scene.scale.view);
    // A share is one of the whole, however small all that is shown are.
    const highest = line.unit === "ratio" ? Math.max(high, 1) : line.unit === "%" ? Math.max(high, 100) : high;
    const height = line.height - 6;
    drawCounter(scene, part, (value) => top + 3 + height * (1 - (value - low) / (highest - low)));
    write(scene, counterText(high, line.unit), top + 3);
  }
}

/** Draws the values of a counter at the heights that `y` says. */
function drawCounter(scene: Scene, part: CounterPart, y: (value: number) => number): void {
  const { context, scale, width, colours } = scene;
  const { theme } = colours;
  const first = Math.max(sampleAt(part.time_ns, scale.view.start_ns), 0);
  const last = Math.min(sampleAt(part.time_ns, scale.view.end_ns) + 1, part.time_ns.length - 1);
  const x = (time_ns: number) => Math.min(Math.max(scale.x(time_ns), -1), width + 1);
  const end = part.end_ns === undefined ? width : Math.min(x(part.end_ns), width);
  const from = (at: number) => x(part.time_ns[at] ?? 0);
  const to = (at: number) => (at < last ? from(at + 1) : Math.max(from(last), end));
  const points: Point[] = [];
  const bands: [left: number, top: number, width: number, height: number][] = [];
  for (let at = first; at <= last; at++) {
    const value = y(part.last[at] ?? 0);
    points.push([from(at), value], [to(at), value]);
    const highest = y(part.max[at] ?? 0);
    const lowest = y(part.min[at] ?? 0);
    if (lowest - highest <= 1) continue;
    // A bucket is as wide as its time; of what is sampled, several samples share a pixel.
    const width = part.end_ns === undefined ? 1 : Math.max(to(at) - from(at), 1);
    bands.push([width > 1 ? from(at) : from(at) - 0.5, highest, width, lowest - highest]);
  }
  const zero = y(0);
  trace(context, [...points, [to(last), zero], [Math.min(from(first), width), zero]]);
  context.globalAlpha = 0.22;
  context.fillStyle = theme.accent;
  context.fill();
  context.globalAlpha = 0.5;
  context.beginPath();
  for (const [left, top, width, height] of bands) context.rect(left, top, width, height);
  context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = theme.accent;
  context.lineWidth = 1;
  trace(context, points);
  context.stroke();
  if (!part.beside) return;
  context.strokeStyle = theme.text;
  for (const points of runsOf(part.beside.values, first, last, (at, value) => [
    [from(at), y(value)],
    [to(at), y(value)],
  ])) {
    trace(context, points);
    context.stroke();
  }
}

/** What neighbours that are known make, each run of them apart. */
function runsOf(
  values: readonly (number | null)[],
  first: number,
  last: number,
  place: (at: number, value: number) => readonly Point[],
): Point[][] {
  const runs: Point[][] = [];
  let isOpen = false;
  for (let at = first; at <= last; at++) {
    const value = values[at] ?? null;
    if (value !== null && !isOpen) runs.push([]);
    isOpen = value !== null;
    if (value !== null) runs.at(-1)?.push(...place(at, value));
  }
  return runs;
}

/** The highest value that is shown, at the right. */
function write({ context, width, colours: { theme } }: Scene, text: string, top: number): void {
  context.font = theme.font;
  context.textBaseline = "top";
  context.textAlign = "right";
  // The line of values may pass behind it.
  context.strokeStyle = theme.ground;
  context.lineWidth = 3;
  context.strokeText(text, width - 4, top);
  context.fillStyle = theme.text;
  context.fillText(text, width - 4, top);
}
