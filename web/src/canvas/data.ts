// What the server has of the window that is shown: tiles of slices, and values of counters.

import { CounterLoader, type FetchCounters } from "./counter_loader";
import type { Hit } from "./hit";
import { type FetchItems, type Item, ItemLoader, isMade } from "./item_loader";
import type { CounterPart } from "./model";
import type { Piece } from "./paint";
import { piecesOf } from "./pieces";
import { type FetchTiles, TileLoader } from "./tile_loader";
import { TileStore, tileKey } from "./tile_store";
import { type Span, tilesOf } from "./view";

/** Bytes of tiles that are kept. */
const STORE_BYTES = 192 * 1024 * 1024;

export interface DataSource {
  readonly fetchTiles: FetchTiles;
  readonly fetchCounters: FetchCounters;
  /** The items, and the values, of rows that are made of results, where there are any. */
  readonly fetchItems?: FetchItems;
  readonly fetchCurves?: FetchCounters;
}

export class TimelineData {
  /** Another number whenever something has come. */
  generation = 0;
  private readonly store = new TileStore(STORE_BYTES);
  private readonly tiles: TileLoader;
  private readonly items: ItemLoader;
  private readonly sampled: CounterLoader;
  private readonly curves: CounterLoader;
  /** What `requestTiles` was called with last. */
  private requested = "";

  /** `end_ns` is where the run ends. */
  constructor(
    source: DataSource,
    private readonly end_ns: number,
    onArrival: () => void,
    onError: (error: unknown) => void,
  ) {
    const arrived = () => {
      this.generation++;
      onArrival();
    };
    this.tiles = new TileLoader(this.store, source.fetchTiles, arrived, onError);
    this.items = new ItemLoader(source.fetchItems, arrived, onError);
    this.sampled = new CounterLoader(source.fetchCounters, arrived, onError);
    // Apart from what is sampled, which is there at once.
    this.curves = new CounterLoader(source.fetchCurves ?? (async () => []), arrived, onError);
  }

  dispose(): void {
    this.tiles.dispose();
    this.items.dispose();
    this.sampled.dispose();
    this.curves.dispose();
  }

  /** The pieces that draw a row now. */
  pieces(row: number, view: Span, level: number): readonly Piece[] {
    if (isMade(row)) return this.items.of(row);
    return piecesOf((level, tile) => this.store.get(tileKey(row, level, tile)), view, level);
  }

  /** What a row that is made of results has where it was hit. */
  item(hit: Hit): Item | null {
    return isMade(hit.row) ? this.items.item(hit) : null;
  }

  /** The values of counters by row, as far as they are here. */
  get counters(): ReadonlyMap<number, CounterPart> {
    const { sampled, curves } = this;
    return curves.parts.size === 0 ? sampled.parts : new Map([...sampled.parts, ...curves.parts]);
  }

  /** Whether something that is shown is still on its way. */
  get isLoading(): boolean {
    return this.tiles.isLoading;
  }

  /** Requests the tiles that rows need; false when these were requested before and nothing has come since. */
  requestTiles(rows: readonly number[], view: Span, level: number): boolean {
    const { first, last } = tilesOf(view, level);
    const key = `${rows.join()} ${level} ${first} ${last} ${this.generation}`;
    if (key === this.requested) return false;
    this.requested = key;
    this.items.want(rows.filter(isMade), view);
    this.tiles.want({ rows: rows.filter((row) => !isMade(row)), view, level, end_ns: this.end_ns + 1 });
    return true;
  }

  requestCounters(rows: readonly number[], view: Span, level: number): void {
    this.sampled.want(
      rows.filter((row) => !isMade(row)),
      view,
      level,
    );
    this.curves.want(rows.filter(isMade), view, level);
  }
}
