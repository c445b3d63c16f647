// Which part of the time is shown, and where a time is on the screen.

import { LEVEL_MAX, tileSpan } from "./tile";

/** A window of time. */
export interface Span {
  readonly start_ns: number;
  readonly end_ns: number;
}

/** The least that can be seen at once: further in there is nothing but whole nanoseconds. */
export const SPAN_MIN_NS = 16;

/** The window as it can be shown: no shorter than the least, no longer than the run with a little room at both sides. */
export function clampView(view: Span, span: Span): Span {
  const whole = Math.max(span.end_ns - span.start_ns, SPAN_MIN_NS);
  const room = whole * 0.02;
  const length = Math.min(Math.max(view.end_ns - view.start_ns, SPAN_MIN_NS), whole + 2 * room);
  const first = span.start_ns - room;
  const last = span.start_ns + whole + room - length;
  const middle = (view.start_ns + view.end_ns) / 2;
  const start_ns = Math.min(Math.max(middle - length / 2, first), Math.max(first, last));
  return { start_ns, end_ns: start_ns + length };
}

/** The window after zooming by `factor` (above 1: further in); what is at `at_ns` stays where it is. */
export function zoomed(view: Span, factor: number, at_ns: number): Span {
  return { start_ns: at_ns - (at_ns - view.start_ns) / factor, end_ns: at_ns + (view.end_ns - at_ns) / factor };
}

/** The window moved by a time. */
export function moved(view: Span, by_ns: number): Span {
  return { start_ns: view.start_ns + by_ns, end_ns: view.end_ns + by_ns };
}

/** A window around `part` with room at both sides. */
export function around(part: Span, room = 0.1): Span {
  const length = Math.max(part.end_ns - part.start_ns, SPAN_MIN_NS);
  return { start_ns: part.start_ns - length * room, end_ns: part.start_ns + length * (1 + room) };
}

/** The window moved as little as needed so that `part` is in it; a longer part is shown from its start. */
export function revealing(view: Span, part: Span): Span {
  const length = view.end_ns - view.start_ns;
  if (part.start_ns >= view.start_ns && part.end_ns <= view.end_ns) return view;
  const isLong = part.end_ns - part.start_ns > length * 0.8;
  if (isLong && part.start_ns < view.end_ns && part.end_ns > view.start_ns) return view;
  const start_ns = isLong ? part.start_ns - length * 0.1 : (part.start_ns + part.end_ns) / 2 - length / 2;
  return { start_ns, end_ns: start_ns + length };
}

/** Places on the screen for times of a window that is `width` wide. */
export class Scale {
  readonly ns_per_px: number;

  constructor(
    readonly view: Span,
    readonly width: number,
  ) {
    this.ns_per_px = (view.end_ns - view.start_ns) / Math.max(width, 1);
  }

  x(time_ns: number): number {
    return (time_ns - this.view.start_ns) / this.ns_per_px;
  }

  time(x: number): number {
    return this.view.start_ns + x * this.ns_per_px;
  }
}

/** The level at which a bin is about a pixel wide: 0.71 to 1.41 of one. */
export function levelOf(ns_per_px: number): number {
  return Math.min(Math.max(Math.round(Math.log2(ns_per_px)), 0), LEVEL_MAX);
}

/** The tiles of a level that a window touches: `first` to `last`, both included. Nothing is before the start. */
export function tilesOf(view: Span, level: number): { first: number; last: number } {
  const span = tileSpan(level);
  const first = Math.max(Math.floor(view.start_ns / span), 0);
  return { first, last: Math.max(Math.ceil(view.end_ns / span) - 1, first) };
}
