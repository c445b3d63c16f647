// What the server says of a run's timeline: docs/http-api.md, Timeline. All times fit into a double.

import type { Span } from "./view";

export type RowKind = "slices" | "samples" | "sampled_frames" | "projected" | "density" | "counter";

export interface TimelineRow {
  readonly id: number;
  readonly name: string;
  readonly kind: RowKind;
  readonly depth: number;
  readonly slices: number;
  readonly unit: string | null;
  readonly rank: number;
  readonly track: number | null;
}

export interface TimelineGroup {
  readonly name: string;
  readonly rank: number;
  readonly kind: "rank" | "device" | "threads" | "track" | "counters";
  readonly is_open: boolean;
  readonly summary: number | null;
  readonly groups: readonly TimelineGroup[];
  readonly rows: readonly TimelineRow[];
}

export interface TimelineInfo {
  readonly span: Span;
  readonly focus: Span;
  readonly groups: readonly TimelineGroup[];
}

export interface Slice {
  readonly id: number;
  readonly name: string;
  readonly kind: string;
  /** As `classes.ts` has it, with `_` for `-`. */
  readonly class: string;
  readonly row: number | null;
  readonly rank: number;
  readonly track: string | number | null;
  readonly start_ns: number;
  readonly dur_ns: number;
  readonly is_unfinished: boolean;
}

export interface Frame {
  readonly file: string | null;
  readonly line: number | null;
  readonly function: string | null;
  readonly text: string;
}

export interface Flow {
  readonly kind: "launch" | "forward_backward" | "batch";
  readonly direction: "in" | "out";
  readonly slice: Slice;
}

export interface SliceDetails {
  readonly slice: Slice;
  readonly ancestors: readonly Slice[];
  readonly children: number;
  readonly self_ns: number;
  readonly step: number | null;
  readonly args: readonly (readonly [key: string, value: string])[];
  readonly stack: readonly Frame[];
  readonly op: Slice | null;
  readonly launch: Slice | null;
  readonly launched: readonly Slice[];
  readonly module: readonly string[];
  readonly flows: readonly Flow[];
}

/** What ranks do together: a collective, or what goes from one rank to another. */
export interface Together {
  /** By rank; none for a slice of nothing that ranks do together. */
  readonly parts: readonly PartOfRank[];
  /** The rank that came last, where one did. */
  readonly last: number | null;
}

/** The part of one rank. */
export interface PartOfRank {
  readonly rank: number;
  /** When it begins to be carried out, and for how long it is: that is not known where it has not ended. */
  readonly start_ns: number;
  readonly dur_ns: number;
  readonly is_unfinished: boolean;
  /** What carries it out first. */
  readonly slice: Slice;
  /** What asks for it, where that is another slice. */
  readonly asked_by: Slice | null;
}

/** The event that a slice was read from, as its source has it; `null` where that cannot be had soon. */
export interface SourceText {
  readonly source_text: string | null;
}

export interface SumRow {
  readonly name: string;
  readonly kind: string | null;
  /** As `classes.ts` has it, with `_` for `-`. */
  readonly class: string;
  readonly slices: number;
  readonly total_ns: number;
  readonly self_ns: number | null;
  readonly longest: number | null;
}

export interface Sums {
  readonly rows: readonly SumRow[];
  readonly slices: number;
  readonly names: number;
}

export interface Found {
  readonly slices: number;
  readonly names: readonly { readonly name: string; readonly slices: number; readonly total_ns: number }[];
  /** How many names there are in all. */
  readonly name_count?: number;
  readonly histogram: readonly number[];
}

export interface NextHit {
  readonly hit: Slice | null;
  readonly position: number;
  readonly slices: number;
}

/** Values of a counter in parts of a window. */
export interface CounterPart {
  readonly row: number;
  readonly time_ns: readonly number[];
  readonly min: readonly number[];
  readonly max: readonly number[];
  readonly last: readonly number[];
  /** A second value of each part, which is drawn as a line, null where it is not known; and what both are called. */
  readonly beside?: {
    readonly own: string;
    readonly other: string;
    readonly values: readonly (number | null)[];
  };
  /** Until when the last value holds; unsaid, until there is another. */
  readonly end_ns?: number;
}

/** Whether it is a sample of a thread's stack, which stands among slices: a moment, without a duration. */
export const isSample = ({ kind }: Slice): boolean => kind === "sample";

/** The window of a slice. */
export const spanOf = (slice: Slice): Span => ({ start_ns: slice.start_ns, end_ns: slice.start_ns + slice.dur_ns });
