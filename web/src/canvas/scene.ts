// Everything that one frame is drawn from.

import type { Colours } from "./colours";
import type { Pen } from "./draw/pen";
import type { Joined } from "./joined";
import type { Layout, Line } from "./layout";
import { linesBetween } from "./layout";
import type { Mark } from "./marks";
import type { CounterPart, Slice } from "./model";
import type { Piece } from "./paint";
import type { Scale, Span } from "./view";

/** The ruler above the rows, in CSS pixels. */
export const RULER_PX = 40;

/** A step as the ruler shows it. */
export interface StepBand extends Span {
  readonly number: number;
  readonly rank: number;
}

/** An arrow between two slices. */
export interface Arrow {
  readonly from: Slice;
  readonly to: Slice;
}

/** A stretch of time, and the rows that it is of: none for all. */
export interface RangeOfRows extends Span {
  readonly rows: readonly number[];
}

/** What is pointed out. */
export interface Emphasis {
  readonly selected: Slice | null;
  readonly hovered: { readonly line: string; readonly start_ns: number; readonly dur_ns: number } | null;
  readonly range: RangeOfRows | null;
  readonly marks: readonly Mark[];
  readonly arrows: readonly Arrow[];
  /** The parts of ranks of the collective that is selected. */
  readonly joined: Joined | null;
}

export interface Scene {
  readonly context: Pen;
  readonly width: number;
  readonly height: number;
  readonly ratio: number;
  readonly scale: Scale;
  readonly level: number;
  /** Where pinned lines end and others begin. */
  readonly pinnedBottom: number;
  /** The pieces of each row of slices that is on the screen. */
  readonly pieces: ReadonlyMap<number, readonly Piece[]>;
  readonly colours: Colours;
  readonly counters: ReadonlyMap<number, CounterPart>;
  readonly steps: readonly StepBand[];
  /** The moment that the ruler counts from. */
  readonly zero_ns: number;
  readonly emphasis: Emphasis;
}

/** The samples that the frames of a line are of. */
export const samplesOf = ({ pieces }: Scene, { samples }: Line): readonly Piece[] =>
  (samples === undefined ? undefined : pieces.get(samples)) ?? [];

/** A line that is on the screen, and where. */
export interface Placed {
  readonly line: Line;
  readonly top: number;
}

/** Where lines are that are seen at least in part. Pinned lines take at most so much of the height. */
export function placed(layout: Layout, height: number, scroll: number, pinnedShown: number): Placed[] {
  const pinned = linesBetween(layout.pinned, 0, pinnedShown).map((line) => ({ line, top: RULER_PX + line.y }));
  const top = RULER_PX + pinnedShown;
  const lines = linesBetween(layout.lines, scroll, scroll + Math.max(height - top, 0));
  return [...pinned, ...lines.map((line) => ({ line, top: top + line.y - scroll }))];
}
