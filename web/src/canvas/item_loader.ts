// Rows that are made of results, and have ids below 0. Their items are asked for all at once, where there are few; else also
// those of the window that is shown.

import type { Hit } from "./hit";
import type { Piece } from "./paint";
import { FLAG_SEVERAL, firstEndingAfter, Names, NO_SLICE, type Tile } from "./tile";
import { around, type Span } from "./view";

/** Something of a row that has no slice of its own. */
export interface Item {
  readonly start_ns: number;
  readonly dur_ns: number;
  readonly name: string;
  readonly class: number;
  /** How many of what the row shows it stands for; one, unless said. */
  readonly count?: number;
  /** The slice that it leads to, as a link names it. */
  readonly link?: { readonly start_ns: number; readonly rank: number; readonly name: string };
}

/** Items by start, which do not overlap. */
export interface Items {
  readonly items: readonly Item[];
  /** False where a shorter window has more. */
  readonly isAll: boolean;
}

/** Asks for the items of a row: of all of the time, or of a window. */
export type FetchItems = (row: number, window: Span | null, signal: AbortSignal) => Promise<Items>;

/** Whether a row is made of results: the server knows nothing of it. */
export const isMade = (row: number): boolean => row < 0;

/** What is known of a row. */
interface Known extends Items {
  readonly pieces: readonly Piece[];
  /** The items of all of the time, which stay around those of a window. */
  readonly overview: readonly Item[];
  /** What was asked for last; null for all of the time. */
  readonly window: Span | null;
  readonly isAsking: boolean;
}

/** What was asked for is asked for anew once it is this much wider than what is shown. */
const WIDER = 6;

/** Keeps the items of rows that are shown, or were. */
export class ItemLoader {
  private readonly rows = new Map<number, Known>();
  private readonly abort = new AbortController();

  constructor(
    private readonly fetchItems: FetchItems | undefined,
    private readonly arrived: () => void,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** Says what is shown now: what was not asked for yet is. */
  want(rows: readonly number[], view: Span): void {
    for (const row of rows) {
      const known = this.rows.get(row);
      if (!known) this.ask(row, null, { items: [], isAll: false, pieces: [], overview: [] });
      else if (!known.isAll && !known.isAsking && !fits(known.window, view)) this.ask(row, around(view, 0.5), known);
    }
  }

  private ask(row: number, window: Span | null, before: Omit<Known, "window" | "isAsking">): void {
    const { signal } = this.abort;
    this.rows.set(row, { ...before, window, isAsking: true });
    this.fetchItems?.(row, window, signal).then(
      (answer) => {
        if (signal.aborted) return;
        const items = window ? inside(before.overview, answer.items, window) : answer.items;
        const overview = window ? before.overview : items;
        const isAll = answer.isAll && window === null;
        this.rows.set(row, { items, isAll, pieces: [pieceOf(items)], overview, window, isAsking: false });
        this.arrived();
      },
      (error: unknown) => {
        if (signal.aborted) return;
        // It is not asked for again.
        this.rows.set(row, { ...before, isAll: true, window, isAsking: false });
        this.onError(error);
      },
    );
  }

  of(row: number): readonly Piece[] {
    return this.rows.get(row)?.pieces ?? [];
  }

  /** The item that was hit. */
  item({ row, start_ns }: Pick<Hit, "row" | "start_ns">): Item | null {
    const known = this.rows.get(row);
    const [piece] = known?.pieces ?? [];
    const item = piece && known?.items[firstEndingAfter(piece.tile, start_ns)];
    return item?.start_ns === start_ns ? item : null;
  }

  dispose(): void {
    this.abort.abort();
  }
}

/** Whether what was asked for of `window` is enough for a view: no less than it, and not of much more. */
function fits(window: Span | null, view: Span): boolean {
  if (window === null) return false;
  const length = (span: Span) => span.end_ns - span.start_ns;
  const isInside = window.start_ns <= view.start_ns && view.end_ns <= window.end_ns;
  return isInside && length(window) <= WIDER * length(view);
}

/** The items of a window, and those of all of the time around it. */
function inside(overview: readonly Item[], items: readonly Item[], window: Span): readonly Item[] {
  const end = ({ start_ns, dur_ns }: Item) => start_ns + dur_ns;
  const first = items[0];
  const last = items.at(-1);
  const from_ns = first ? Math.min(first.start_ns, window.start_ns) : window.start_ns;
  const to_ns = last ? Math.max(end(last), window.end_ns) : window.end_ns;
  const before = overview.filter((item) => end(item) <= from_ns);
  return [...before, ...items, ...overview.filter((item) => item.start_ns >= to_ns)];
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
    count: Uint32Array.from(items, (item) => item.count ?? 1),
    name: Uint32Array.from(items, (item) => numbers.get(item.name) ?? 0),
    class: Uint8Array.from(items, (item) => item.class),
    flags: Uint8Array.from(items, (item) => ((item.count ?? 1) > 1 ? FLAG_SEVERAL : 0)),
    names: new Names(ends, bytes),
  };
  const all = { from_ns: Number.NEGATIVE_INFINITY, to_ns: Number.POSITIVE_INFINITY };
  return { tile, ...all, begin_ns: Number.NEGATIVE_INFINITY, isFirst: true };
}
