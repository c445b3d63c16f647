// Values over time: a line of steps with the ground below it filled, and a band where several samples share a part.

import { formatBytes, formatCount, formatPlain, formatRatio } from "../../format/units";
import type { CounterPart } from "../model";
import type { Placed, Scene } from "../scene";
import type { Span } from "../view";

/** A counter's value in its unit. */
export function counterText(value: number, unit: string | null): string {
  if (unit === "bytes") return formatBytes(Math.round(value));
  if (unit === "ratio") return formatRatio(value);
  return Number.isInteger(value) ? formatCount(value) : formatPlain(value);
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

export function drawCounters(scene: Scene, lines: readonly Placed[]): void {
  const { context, scale, width, colours } = scene;
  const { theme } = colours;
  for (const { line, top } of lines) {
    if (line.row === null || line.kind !== "counter") continue;
    const part = scene.counters.get(line.row);
    if (!part || part.time_ns.length === 0) continue;
    const { low, high } = rangeOf(part, scale.view);
    const height = line.height - 6;
    const y = (value: number) => top + 3 + height * (1 - (value - low) / (high - low));
    const zero = y(0);

    const first = Math.max(sampleAt(part.time_ns, scale.view.start_ns), 0);
    const points: Point[] = [];
    const bands: [x: number, top: number, height: number][] = [];
    let x = 0;
    let last = part.time_ns.length;
    for (let at = first; at < part.time_ns.length; at++) {
      x = Math.min(Math.max(scale.x(part.time_ns[at] ?? 0), -1), width + 1);
      const value = y(part.last[at] ?? 0);
      if (at > first) points.push([x, y(part.last[at - 1] ?? 0)]);
      points.push([x, value]);
      const highest = y(part.max[at] ?? 0);
      const lowest = y(part.min[at] ?? 0);
      if (lowest - highest > 1) bands.push([x, highest, lowest - highest]);
      if ((part.time_ns[at] ?? 0) > scale.view.end_ns) {
        last = at + 1;
        break;
      }
    }
    const end = Math.max(x, width);
    points.push([end, y(part.last[last - 1] ?? 0)]);
    const begin = Math.min(Math.max(scale.x(part.time_ns[first] ?? 0), -1), width);
    trace(context, [...points, [end, zero], [begin, zero]]);
    context.globalAlpha = 0.22;
    context.fillStyle = theme.accent;
    context.fill();
    context.globalAlpha = 0.5;
    context.beginPath();
    for (const [x, top, height] of bands) context.rect(x - 0.5, top, 1, height);
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = theme.accent;
    context.lineWidth = 1;
    trace(context, points);
    context.stroke();

    context.font = theme.font;
    context.textBaseline = "top";
    context.textAlign = "right";
    const text = counterText(high, line.unit);
    // The line of values may pass behind it.
    context.strokeStyle = theme.ground;
    context.lineWidth = 3;
    context.strokeText(text, width - 4, top + 3);
    context.fillStyle = theme.text;
    context.fillText(text, width - 4, top + 3);
  }
}
