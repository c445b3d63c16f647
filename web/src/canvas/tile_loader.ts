// Which tiles are asked for, in what order, and what is no longer wanted.

import { decodeTiles, LEVEL_MAX, tileSpan } from "./tile";
import { type TileStore, tileKey } from "./tile_store";
import { type Span, tilesOf } from "./view";

/** Rows times tiles that the server answers at once. */
export const TILES_PER_REQUEST = 256;

/** Requests at a time: browsers open six connections to a server, and some are for other things. */
const REQUESTS_MAX = 4;

/** A pause after a failure, in ms, before the same is asked again. */
const PAUSE_MS = 3000;

/** Tiles `first` to `first + count − 1` of some rows. */
export interface TileRequest {
  readonly rows: readonly number[];
  readonly level: number;
  readonly first: number;
  readonly count: number;
}

/** Asks the server. */
export type FetchTiles = (request: TileRequest, signal: AbortSignal) => Promise<ArrayBuffer>;

/** What is shown. */
export interface Wanted {
  readonly rows: readonly number[];
  readonly view: Span;
  readonly level: number;
  /** Where tiles end: none begins there or later. */
  readonly end_ns: number;
}

/** What `wanted` misses, as few requests: rows that miss the same tiles are asked for together. */
export function requestsFor(wanted: Wanted, isKnown: (key: string) => boolean): TileRequest[] {
  const { level } = wanted;
  const { first, last } = tilesOf(wanted.view, level);
  const end = Math.min(last, Math.max(Math.ceil(wanted.end_ns / tileSpan(level)) - 1, 0));
  const rowsOf = new Map<string, { first: number; count: number; rows: number[] }>();
  for (const row of wanted.rows) {
    let at = first;
    while (at <= end) {
      if (isKnown(tileKey(row, level, at))) {
        at++;
        continue;
      }
      let count = 1;
      while (at + count <= end && count < TILES_PER_REQUEST && !isKnown(tileKey(row, level, at + count))) count++;
      const key = `${at}:${count}`;
      const same = rowsOf.get(key) ?? { first: at, count, rows: [] };
      same.rows.push(row);
      rowsOf.set(key, same);
      at += count;
    }
  }
  const requests: TileRequest[] = [];
  for (const { first, count, rows } of rowsOf.values()) {
    const most = Math.floor(TILES_PER_REQUEST / count);
    for (let at = 0; at < rows.length; at += most) {
      requests.push({ rows: rows.slice(at, at + most), level, first, count });
    }
  }
  return requests;
}

/** What will probably be shown next: the level above, a window to each side, the level below. */
export function prefetchFor(wanted: Wanted): Wanted[] {
  const length = wanted.view.end_ns - wanted.view.start_ns;
  const wider = { start_ns: wanted.view.start_ns - length, end_ns: wanted.view.end_ns + length };
  const next: Wanted[] = [];
  if (wanted.level < LEVEL_MAX) next.push({ ...wanted, level: wanted.level + 1, view: wider });
  next.push({ ...wanted, view: wider });
  if (wanted.level > 0) next.push({ ...wanted, level: wanted.level - 1 });
  return next;
}

interface Flight {
  readonly keys: readonly string[];
  readonly abort: AbortController;
}

/** Fetches what is wanted into a store. */
export class TileLoader {
  private flights: Flight[] = [];
  private readonly pending = new Set<string>();
  private readonly failed = new Map<string, number>();
  private wanted: Wanted | undefined;
  private isDisposed = false;

  constructor(
    private readonly store: TileStore,
    private readonly fetchTiles: FetchTiles,
    private readonly arrived: () => void,
    private readonly onError: (error: unknown) => void,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Requests on their way. */
  get inFlight(): number {
    return this.flights.length;
  }

  /** Says what is shown now. Requests none of whose tiles it needs any more, nor soon, are aborted. */
  want(wanted: Wanted): void {
    this.wanted = wanted;
    const useful = new Set<string>();
    const notUseful = (key: string) => !useful.has(key);
    for (const each of [wanted, ...prefetchFor(wanted)]) {
      for (const request of requestsFor(each, () => false)) for (const key of keysOf(request)) useful.add(key);
    }
    for (const flight of this.flights) if (flight.keys.every(notUseful)) flight.abort.abort();
    this.pump();
  }

  /** Whether something that is shown is on its way. */
  get isLoading(): boolean {
    return this.wanted !== undefined && this.missing(this.wanted, false).length > 0;
  }

  dispose(): void {
    this.isDisposed = true;
    for (const flight of this.flights) flight.abort.abort();
  }

  private missing(wanted: Wanted, isNew: boolean): TileRequest[] {
    return requestsFor(
      wanted,
      (key) => this.store.has(key) || (isNew && (this.pending.has(key) || this.isPaused(key))),
    );
  }

  private isPaused(key: string): boolean {
    const until = this.failed.get(key);
    if (until === undefined) return false;
    if (until > this.now()) return true;
    this.failed.delete(key);
    return false;
  }

  private pump(): void {
    if (this.isDisposed || !this.wanted) return;
    for (const request of this.missing(this.wanted, true)) {
      if (this.flights.length >= REQUESTS_MAX) return;
      this.send(request);
    }
    // What is shown has the connections to itself.
    if (this.flights.length > 0) return;
    for (const next of prefetchFor(this.wanted)) {
      const [request] = this.missing(next, true);
      if (request) {
        this.send(request);
        return;
      }
    }
  }

  private send(request: TileRequest): void {
    const keys = keysOf(request);
    const flight: Flight = { keys, abort: new AbortController() };
    this.flights.push(flight);
    for (const key of keys) this.pending.add(key);
    this.fetchTiles(request, flight.abort.signal)
      .then((buffer) => {
        const tiles = decodeTiles(buffer);
        if (tiles.length !== keys.length) throw new Error(`tiles: ${tiles.length} blocks came for ${keys.length}`);
        if (this.isDisposed) return;
        this.store.put(
          tiles.map((tile, at) => [keys[at] ?? "", tile] as const),
          buffer.byteLength,
        );
        this.landed(flight);
        this.arrived();
      })
      .catch((error: unknown) => {
        if (!flight.abort.signal.aborted) {
          if (this.failed.size > 10_000) this.failed.clear();
          for (const key of keys) this.failed.set(key, this.now() + PAUSE_MS);
          this.onError(error);
        }
        this.landed(flight);
      });
  }

  private landed(flight: Flight): void {
    this.flights = this.flights.filter((other) => other !== flight);
    for (const key of flight.keys) this.pending.delete(key);
    this.pump();
  }
}

/** The keys of the blocks of an answer, in their order. */
export function keysOf(request: TileRequest): string[] {
  const keys: string[] = [];
  for (const row of request.rows) {
    for (let at = 0; at < request.count; at++) keys.push(tileKey(row, request.level, request.first + at));
  }
  return keys;
}
