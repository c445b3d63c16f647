// Values of the counters that are shown, asked for a window that is a little larger and on whole tiles, so that moving
// does not ask at once.

import type { CounterPart } from "./model";
import { tileSpan } from "./tile";
import { type Span, tilesOf } from "./view";

/** What the server gives at most. */
const POINTS_MAX = 4096;

export type FetchCounters = (
  rows: readonly number[],
  window: Span,
  points: number,
  signal: AbortSignal,
) => Promise<readonly CounterPart[]>;

/** A window on whole tiles around `view`, and its parts: about one a pixel. */
export function windowFor(view: Span, level: number): { window: Span; points: number } {
  const { first, last } = tilesOf(view, level);
  const begin = Math.max(first - 1, 0);
  const window = { start_ns: begin * tileSpan(level), end_ns: (last + 2) * tileSpan(level) };
  return { window, points: Math.min((last + 2 - begin) * 512, POINTS_MAX) };
}

/** Keeps the values that are shown. */
export class CounterLoader {
  readonly parts = new Map<number, CounterPart>();
  private asked = "";
  private abort: AbortController | null = null;

  constructor(
    private readonly fetchCounters: FetchCounters,
    private readonly arrived: () => void,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** Says what is shown now; what was shown before stays until the new values are there. */
  want(rows: readonly number[], view: Span, level: number): void {
    if (rows.length === 0) return;
    const { window, points } = windowFor(view, level);
    const key = `${rows.join()} ${window.start_ns} ${window.end_ns}`;
    if (key === this.asked) return;
    this.asked = key;
    this.abort?.abort();
    const abort = new AbortController();
    this.abort = abort;
    this.fetchCounters(rows, window, points, abort.signal).then(
      (parts) => {
        if (abort.signal.aborted) return;
        for (const part of parts) this.parts.set(part.row, part);
        for (const row of this.parts.keys()) if (!rows.includes(row)) this.parts.delete(row);
        this.arrived();
      },
      (error: unknown) => {
        if (!abort.signal.aborted) this.onError(error);
      },
    );
  }

  dispose(): void {
    this.abort?.abort();
  }
}
