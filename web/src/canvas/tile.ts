// What rows show, as the server sends it: columns of numbers that are looked at where they lie. docs/http-api.md, Tiles.

/** Bins of a tile, whatever its level. */
export const TILE_BINS = 512;

/** The largest level that the server has: a tile of it takes 53 days. */
export const LEVEL_MAX = 43;

/** `slice` of an item behind which no slice stands. */
export const NO_SLICE = 0xffffffff;

export const FLAG_UNFINISHED = 1;
export const FLAG_SEVERAL = 2;

const MAGIC = 0x314c5453;
const CLASS_COUNT = 11;

/** Texts of an answer, made from their bytes when they are first asked for. */
export class Names {
  private readonly texts: (string | undefined)[];
  private readonly hashes: Uint32Array;

  constructor(
    private readonly ends: Uint32Array,
    private readonly bytes: Uint8Array,
  ) {
    this.texts = new Array(ends.length - 1);
    this.hashes = new Uint32Array(ends.length - 1);
  }

  get length(): number {
    return this.texts.length;
  }

  /** The text of a name; an empty one where there is no such name. */
  text(name: number): string {
    if (name >= this.length) return "";
    const known = this.texts[name];
    if (known !== undefined) return known;
    const text = new TextDecoder().decode(this.part(name));
    this.texts[name] = text;
    return text;
  }

  /** A number from the name's bytes: the same in every answer, so that a name keeps its shade. Never 0. */
  hash(name: number): number {
    if (name >= this.length) return 1;
    const known = this.hashes[name] ?? 0;
    if (known !== 0) return known;
    const hash = hashOf(this.part(name));
    this.hashes[name] = hash;
    return hash;
  }

  private part(name: number): Uint8Array {
    return this.bytes.subarray(this.ends[name], this.ends[name + 1]);
  }
}

/** FNV-1a of some bytes; 1 instead of 0. */
export function hashOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < bytes.length; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
  return hash >>> 0 || 1;
}

/** The items of one row in one tile, by start. Columns are views into the answer. */
export interface Tile {
  readonly length: number;
  readonly start_ns: Float64Array;
  readonly dur_ns: Float64Array;
  readonly busy_ns: Float64Array;
  readonly slice: Uint32Array;
  readonly count: Uint32Array;
  readonly name: Uint32Array;
  readonly class: Uint8Array;
  readonly flags: Uint8Array;
  readonly names: Names;
}

/** The tiles of an answer: those of the first row, then those of the second, and so on. Throws on other bytes. */
export function decodeTiles(buffer: ArrayBuffer): Tile[] {
  if (buffer.byteLength < 16) throw new Error("tiles: the answer is shorter than its head");
  const [magic = 0, blocks = 0, items = 0, names = 0] = new Uint32Array(buffer, 0, 4);
  if (magic !== MAGIC) throw new Error("tiles: the answer does not begin as tiles do");

  let at = 16;
  const column = <T>(
    bytes: number,
    length: number,
    view: new (buffer: ArrayBuffer, at: number, length: number) => T,
  ) => {
    const begin = (at + 7) & ~7;
    at = begin + bytes * length;
    if (at > buffer.byteLength) throw new Error("tiles: the answer ends too early");
    return new view(buffer, begin, length);
  };
  const lengths = column(4, blocks, Uint32Array);
  const start_ns = column(8, items, Float64Array);
  const dur_ns = column(8, items, Float64Array);
  const busy_ns = column(8, items, Float64Array);
  const slice = column(4, items, Uint32Array);
  const count = column(4, items, Uint32Array);
  const name = column(4, items, Uint32Array);
  const classes = column(1, items, Uint8Array);
  const flags = column(1, items, Uint8Array);
  const ends = column(4, names + 1, Uint32Array);
  const bytes = column(1, ends[names] ?? 0, Uint8Array);
  for (let at = 0; at < items; at++) {
    if ((classes[at] ?? 0) >= CLASS_COUNT) throw new Error(`tiles: there is no class ${classes[at]}`);
  }

  const texts = new Names(ends, bytes);
  const tiles: Tile[] = [];
  let first = 0;
  for (const length of lengths) {
    const end = first + length;
    if (end > items) throw new Error("tiles: blocks have more items than there are");
    tiles.push({
      length,
      start_ns: start_ns.subarray(first, end),
      dur_ns: dur_ns.subarray(first, end),
      busy_ns: busy_ns.subarray(first, end),
      slice: slice.subarray(first, end),
      count: count.subarray(first, end),
      name: name.subarray(first, end),
      class: classes.subarray(first, end),
      flags: flags.subarray(first, end),
      names: texts,
    });
    first = end;
  }
  return tiles;
}

/** How many ns a tile of a level holds. Levels go beyond 2^31, so this is no shift. */
export function tileSpan(level: number): number {
  return TILE_BINS * 2 ** level;
}

/** The first item that ends after `time_ns`, or the number of items. Items of a row do not overlap. */
export function firstEndingAfter(tile: Tile, time_ns: number): number {
  let low = 0;
  let high = tile.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const end = (tile.start_ns[middle] ?? 0) + (tile.dur_ns[middle] ?? 0);
    if (end > time_ns) high = middle;
    else low = middle + 1;
  }
  return low;
}
