// The tiles that are known, the least lately used of which go when they need too much memory.

import type { Tile } from "./tile";

/** An answer that tiles are views into; its memory is free when none of them is kept. */
interface Answer {
  readonly bytes: number;
  kept: number;
}

interface Kept {
  readonly tile: Tile;
  readonly answer: Answer;
}

/** Where a tile is kept. */
export function tileKey(row: number, level: number, tile: number): string {
  return `${row}:${level}:${tile}`;
}

/** Keeps tiles up to a number of bytes. */
export class TileStore {
  private readonly tiles = new Map<string, Kept>();
  private bytesKept = 0;

  constructor(readonly bytesMax: number) {}

  /** The bytes of all answers of which any tile is kept. */
  get bytes(): number {
    return this.bytesKept;
  }

  get size(): number {
    return this.tiles.size;
  }

  has(key: string): boolean {
    return this.tiles.has(key);
  }

  /** A tile, which from now on is the most lately used. */
  get(key: string): Tile | undefined {
    const kept = this.tiles.get(key);
    if (!kept) return undefined;
    this.tiles.delete(key);
    this.tiles.set(key, kept);
    return kept.tile;
  }

  /** Keeps the tiles of an answer of `bytes` bytes; the latest answer stays whole, whatever its size. */
  put(tiles: readonly (readonly [key: string, tile: Tile])[], bytes: number): void {
    const answer: Answer = { bytes, kept: 0 };
    this.bytesKept += bytes;
    for (const [key, tile] of tiles) {
      this.drop(key);
      this.tiles.set(key, { tile, answer });
      answer.kept++;
    }
    if (answer.kept === 0) this.bytesKept -= bytes;
    for (const [key, kept] of this.tiles) {
      if (this.bytesKept <= this.bytesMax || kept.answer === answer) break;
      this.drop(key);
    }
  }

  clear(): void {
    this.tiles.clear();
    this.bytesKept = 0;
  }

  private drop(key: string): void {
    const kept = this.tiles.get(key);
    if (!kept) return;
    this.tiles.delete(key);
    kept.answer.kept--;
    if (kept.answer.kept === 0) this.bytesKept -= kept.answer.bytes;
  }
}
