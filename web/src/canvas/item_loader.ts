// Rows whose items are asked for all at once, since there are few: they are made of results, and have ids below 0.

import type { Piece } from "./paint";
import { Names, NO_SLICE, type Tile } from "./tile";

/** Something of a row behind which no slice stands. */
export interface Item {
  readonly start_ns: number;
  readonly dur_ns: number;
  readonly name: string;
  readonly class: number;
}

/** Asks for everything of a row, by start; its items do not overlap. */
export type FetchItems = (row: number, signal: AbortSignal) => Promise<readonly Item[]>;

/** Whether a row is made of results: the server knows nothing of it. */
export const isMade = (row: number): boolean => row < 0;

/** Keeps the items of rows that are shown, or were. */
export class ItemLoader {
  private readonly pieces = new Map<number, readonly Piece[]>();
  private readonly abort = new AbortController();

  constructor(
    private readonly fetchItems: FetchItems | undefined,
    private readonly arrived: () => void,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** Says what is shown now: what was not asked for yet is. */
  want(rows: readonly number[]): void {
    const { signal } = this.abort;
    for (const row of rows) {
      if (this.pieces.has(row)) continue;
      this.pieces.set(row, []);
      this.fetchItems?.(row, signal).then(
        (items) => {
          if (signal.aborted) return;
          this.pieces.set(row, [pieceOf(items)]);
          this.arrived();
        },
        (error: unknown) => {
          if (!signal.aborted) this.onError(error);
        },
      );
    }
  }

  of(row: number): readonly Piece[] {
    return this.pieces.get(row) ?? [];
  }

  dispose(): void {
    this.abort.abort();
  }
}

/** Items as a row is drawn from them: one tile for all of the time. */
export function pieceOf(items: readonly Item[]): Piece {
  const names = [...new Set(items.map(({ name }) => name))];
  const numbers = new Map(names.map((name, at) => [name, at]));
  const texts = names.map((name) => new TextEncoder().encode(name));
  const ends = new Uint32Array(names.length + 1);
  texts.forEach((text, at) => {
    ends[at + 1] = (ends[at] ?? 0) + text.length;
  });
  const bytes = new Uint8Array(ends.at(-1) ?? 0);
  texts.forEach((text, at) => {
    bytes.set(text, ends[at]);
  });
  const dur_ns = Float64Array.from(items, (item) => item.dur_ns);
  const tile: Tile = {
    length: items.length,
    start_ns: Float64Array.from(items, (item) => item.start_ns),
    dur_ns,
    busy_ns: dur_ns,
    slice: new Uint32Array(items.length).fill(NO_SLICE),
    count: new Uint32Array(items.length).fill(1),
    name: Uint32Array.from(items, (item) => numbers.get(item.name) ?? 0),
    class: Uint8Array.from(items, (item) => item.class),
    flags: new Uint8Array(items.length),
    names: new Names(ends, bytes),
  };
  const all = { from_ns: Number.NEGATIVE_INFINITY, to_ns: Number.POSITIVE_INFINITY };
  return { tile, ...all, begin_ns: Number.NEGATIVE_INFINITY, isFirst: true };
}
