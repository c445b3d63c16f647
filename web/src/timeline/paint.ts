// A row as one line of pixels. What a pixel shows is the item that covers most of it; how opaque it is says how much of
// the pixel is covered. A few such lines are drawn faster than the thousands of rectangles that they stand for.

import { FLAG_SEVERAL, firstEndingAfter, type Tile } from "./tile";
import type { Scale } from "./view";

/** What is the least opaque that a pixel is in which anything happens, so that a lonely slice is seen. */
const ALPHA_MIN = 70;

/** From this width on, in pixels, slices have an edge at their start, which tells them from a neighbour of one colour. */
const EDGE_FROM_PX = 4;

/** Colours by class and shade, as `0x00BBGGRR`. */
export interface Palette {
  colour(tile: Tile, item: number): number;
}

/** Part of a row that one tile has to say. */
export interface Piece {
  readonly tile: Tile;
  /** What is outside is left to other pieces. */
  readonly from_ns: number;
  readonly to_ns: number;
  /** Where the tile begins: what began before is drawn only by the first piece of a run. */
  readonly begin_ns: number;
  readonly isFirst: boolean;
}

/** Paints rows of one width, one after the other. */
export class StripPainter {
  private readonly cover: Float32Array;
  private readonly best: Float32Array;
  private readonly colour: Uint32Array;
  private readonly several: Uint8Array;
  private readonly edge: Uint8Array;

  constructor(readonly width: number) {
    this.cover = new Float32Array(width);
    this.best = new Float32Array(width);
    this.colour = new Uint32Array(width);
    this.several = new Uint8Array(width);
    this.edge = new Uint8Array(width);
  }

  /** Forgets the row before. */
  begin(): void {
    this.cover.fill(0);
    this.best.fill(0);
    this.several.fill(0);
    this.edge.fill(0);
  }

  /** Adds what a tile says of the row. */
  add(piece: Piece, scale: Scale, palette: Palette): void {
    const { tile } = piece;
    const from = Math.max(piece.from_ns, scale.view.start_ns);
    const to = Math.min(piece.to_ns, scale.view.end_ns);
    for (let at = firstEndingAfter(tile, from - 1); at < tile.length; at++) {
      const start = tile.start_ns[at] ?? 0;
      if (start >= to) break;
      if (start < piece.begin_ns && !piece.isFirst) continue;
      const dur = tile.dur_ns[at] ?? 0;
      const low = Math.max(start, from);
      const high = Math.min(start + dur, to);
      if (high <= low && dur > 0) continue;
      const share = dur > 0 ? Math.min((tile.busy_ns[at] ?? 0) / dur, 1) : 1;
      const isSeveral = ((tile.flags[at] ?? 0) & FLAG_SEVERAL) !== 0;
      this.item(scale.x(low), scale.x(Math.max(high, low)), share, palette.colour(tile, at), isSeveral);
      if (start >= from && dur >= EDGE_FROM_PX * scale.ns_per_px) {
        const x = Math.floor(scale.x(start));
        if (x >= 0 && x < this.width) this.edge[x] = 1;
      }
    }
  }

  private item(left: number, right: number, share: number, colour: number, isSeveral: boolean): void {
    const first = Math.max(Math.floor(left), 0);
    const last = Math.min(Math.ceil(right) - 1, this.width - 1);
    if (last <= first) {
      // Within one pixel. What has no length is there, too.
      if (first < this.width) this.pixel(first, Math.max(right - left, 1e-6) * share, colour, isSeveral);
      return;
    }
    this.pixel(first, (first + 1 - left) * share, colour, isSeveral);
    if (share === 1 && !isSeveral) {
      // Nothing else can be there: items of a row do not overlap.
      this.cover.fill(1, first + 1, last);
      this.best.fill(1, first + 1, last);
      this.colour.fill(colour, first + 1, last);
    } else {
      for (let x = first + 1; x < last; x++) this.pixel(x, share, colour, isSeveral);
    }
    this.pixel(last, Math.min(right - last, 1) * share, colour, isSeveral);
  }

  private pixel(x: number, part: number, colour: number, isSeveral: boolean): void {
    this.cover[x] = (this.cover[x] ?? 0) + part;
    if (part > (this.best[x] ?? 0)) {
      this.best[x] = part;
      this.colour[x] = colour;
      this.several[x] = isSeveral ? 1 : 0;
    }
  }

  /**
   * Writes the line, as ImageData has its pixels, at `at`, and behind it the line of the row's foot: where a pixel stands
   * for several slices, its foot is half as opaque.
   */
  finish(out: Uint32Array, at: number): void {
    const { width, cover, colour, several, edge } = this;
    for (let x = 0; x < width; x++) {
      const part = cover[x] ?? 0;
      if (part === 0) {
        out[at + x] = 0;
        out[at + width + x] = 0;
        continue;
      }
      let alpha = opacityOf(part);
      if (edge[x] === 1) alpha >>= 1;
      const pixel = colour[x] ?? 0;
      out[at + x] = ((alpha << 24) | pixel) >>> 0;
      const foot = several[x] === 1 ? alpha >> 1 : alpha;
      out[at + width + x] = ((foot << 24) | pixel) >>> 0;
    }
  }
}

/** How opaque a pixel is of which this part is covered, 0 to 255. */
export function opacityOf(part: number): number {
  return part <= 0 ? 0 : Math.round(ALPHA_MIN + (255 - ALPHA_MIN) * Math.min(part, 1));
}
