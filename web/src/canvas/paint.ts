// A row as one line of pixels. What a pixel shows is the item that covers most of it; how opaque it is says how much of
// the pixel is covered. A few such lines are drawn faster than the thousands of rectangles that they stand for.

import { FLAG_SEVERAL, firstEndingAfter, type Tile } from "./tile";
import type { Scale } from "./view";

/** What is the least opaque that a pixel is in which anything happens, so that a lonely slice is seen. */
const ALPHA_MIN = 70;

/** From this width on, in pixels, slices have an edge at their start, which tells them from a neighbour of one colour. */
const EDGE_FROM_PX = 4;

/** How wide a moment is drawn, in pixels. */
const MOMENT_PX = 2;

/** How much of a pixel is covered where a frame is between two samples that have it: nobody looked there. */
const BETWEEN_SAMPLES = 0.2;

/** How wide a stripe of a hatch is, and how opaque beside what is between stripes. */
const STRIPE_PART = 1 / 3;
const STRIPE_OPACITY = 0.7;

/** Colours of a tile's items, as `0x00BBGGRR`, in their order. */
export interface Palette {
  coloursOf(tile: Tile): Uint32Array;
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
  private readonly seen: Uint8Array;

  constructor(readonly width: number) {
    this.cover = new Float32Array(width);
    this.best = new Float32Array(width);
    this.colour = new Uint32Array(width);
    this.several = new Uint8Array(width);
    this.edge = new Uint8Array(width);
    this.seen = new Uint8Array(width);
  }

  /** Forgets the row before. */
  begin(): void {
    this.cover.fill(0);
    this.best.fill(0);
    this.several.fill(0);
    this.edge.fill(0);
    this.seen.fill(0);
  }

  /** Adds what a tile says of the row. This is the innermost loop of a frame: it makes no objects and calls little. */
  add(piece: Piece, scale: Scale, palette: Palette): void {
    const { tile, begin_ns, isFirst } = piece;
    const { start_ns, dur_ns, busy_ns, flags, length } = tile;
    const colours = palette.coloursOf(tile);
    const { cover, best, colour, several, edge, width } = this;
    const origin = scale.view.start_ns;
    const px = 1 / scale.ns_per_px;
    const from = Math.max(piece.from_ns, origin);
    const to = Math.min(piece.to_ns, scale.view.end_ns);
    const edgeFrom = EDGE_FROM_PX * scale.ns_per_px;
    for (let at = firstEndingAfter(tile, from - 1); at < length; at++) {
      const start = start_ns[at] as number;
      if (start >= to) break;
      if (start < begin_ns && !isFirst) continue;
      const dur = dur_ns[at] as number;
      const end = start + dur;
      const low = Math.max(start, from);
      const high = Math.min(end, to);
      if (high <= low && dur > 0) continue;
      const left = (low - origin) * px;
      const right = (high - origin) * px;
      const first = left | 0;
      if (first >= width) break;
      if (start >= from && dur >= edgeFrom) edge[first] = 1;
      const busy = busy_ns[at] as number;
      const share = busy < dur ? busy / dur : 1;
      const isSeveral = ((flags[at] as number) & FLAG_SEVERAL) !== 0;
      const tint = colours[at] as number;
      let last = right | 0;
      if (last === right) last--;
      if (last >= width) last = width - 1;
      if (last <= first) {
        // Within one pixel. What has no length is there, too.
        const part = (right > left ? right - left : 1e-6) * share;
        cover[first] = (cover[first] as number) + part;
        if (part > (best[first] as number)) {
          best[first] = part;
          colour[first] = tint;
          several[first] = isSeveral ? 1 : 0;
        }
        continue;
      }
      this.pixel(first, (first + 1 - left) * share, tint, isSeveral);
      if (share === 1 && !isSeveral) {
        // Nothing else can be there: items of a row do not overlap.
        cover.fill(1, first + 1, last);
        best.fill(1, first + 1, last);
        colour.fill(tint, first + 1, last);
        several.fill(0, first + 1, last);
      } else {
        for (let x = first + 1; x < last; x++) this.pixel(x, share, tint, isSeveral);
      }
      this.pixel(last, Math.min(right - last, 1) * share, tint, isSeveral);
    }
  }

  /** Adds what a tile says of a row of moments: each is as wide at every zoom, since it has no duration. */
  addMoments(piece: Piece, scale: Scale, palette: Palette): void {
    const { tile } = piece;
    const colours = palette.coloursOf(tile);
    eachMoment(piece, scale, this.width, (first, last, at) => {
      const isSeveral = ((tile.flags[at] as number) & FLAG_SEVERAL) !== 0;
      for (let x = first; x <= last; x++) this.pixel(x, 1, colours[at] as number, isSeveral);
    });
  }

  /** Makes what was added pale, and marks in its foot the moments at which it was seen. */
  fade(samples: readonly Piece[], scale: Scale): void {
    const { cover, several, seen, width } = this;
    several.fill(0);
    for (let x = 0; x < width; x++) if ((cover[x] as number) > 0) cover[x] = BETWEEN_SAMPLES;
    for (const piece of samples) eachMoment(piece, scale, width, (first, last) => seen.fill(1, first, last + 1));
  }

  private pixel(x: number, part: number, colour: number, isSeveral: boolean): void {
    this.cover[x] = (this.cover[x] as number) + part;
    if (part > (this.best[x] as number)) {
      this.best[x] = part;
      this.colour[x] = colour;
      this.several[x] = isSeveral ? 1 : 0;
    }
  }

  /**
   * Writes the line, as ImageData has its pixels, at `at`, and behind it the line of the row's foot: where a pixel stands
   * for several slices, its foot is half as opaque, and where a sample was taken it is opaque.
   */
  finish(out: Uint32Array, at: number): void {
    const { width, cover, colour, several, edge, seen } = this;
    out.fill(0, at, at + 2 * width);
    for (let x = 0; x < width; x++) {
      const part = cover[x] as number;
      if (part === 0) continue;
      const alpha = edge[x] === 1 ? opacityOf(part) >> 1 : opacityOf(part);
      const pixel = colour[x] as number;
      out[at + x] = (alpha << 24) | pixel;
      const foot = several[x] === 1 ? alpha >> 1 : alpha;
      out[at + width + x] = ((seen[x] === 1 ? 255 : foot) << 24) | pixel;
    }
  }

  /**
   * Writes what is no slice but an average of many: `period` lines that repeat downwards, with slanting stripes in them that
   * let the ground through. Such a row has no edges, since nothing begins where its bins do.
   */
  finishHatched(out: Uint32Array, at: number, period: number): void {
    const { width, cover, colour } = this;
    const stripe = stripeOf(period);
    out.fill(0, at, at + period * width);
    for (let x = 0; x < width; x++) {
      const part = cover[x] as number;
      if (part === 0) continue;
      const alpha = opacityOf(part);
      const pixel = colour[x] as number;
      const between = (alpha << 24) | pixel;
      const within = (((alpha * STRIPE_OPACITY) | 0) << 24) | pixel;
      for (let line = 0; line < period; line++) {
        out[at + line * width + x] = (x + line) % period < stripe ? within : between;
      }
    }
  }
}

/** Calls `each` with the first and the last pixel of every moment of a piece, which has no duration and is seen at every zoom. */
function eachMoment(
  { tile, from_ns, to_ns, begin_ns, isFirst }: Piece,
  scale: Scale,
  width: number,
  each: (first: number, last: number, at: number) => void,
): void {
  const from = Math.max(from_ns, scale.view.start_ns - MOMENT_PX * scale.ns_per_px);
  const to = Math.min(to_ns, scale.view.end_ns);
  for (let at = firstEndingAfter(tile, from - 1); at < tile.length; at++) {
    const start = tile.start_ns[at] as number;
    if (start >= to) break;
    if (start < begin_ns && !isFirst) continue;
    const first = Math.floor(scale.x(start));
    const end = Math.floor(scale.x(start + (tile.dur_ns[at] as number)));
    each(Math.max(first, 0), Math.min(Math.max(end, first + MOMENT_PX - 1), width - 1), at);
  }
}

/** How a row is painted: as moments, as frames between moments, or as what lasts. */
export function paintRow(
  painter: StripPainter,
  pieces: readonly Piece[],
  { kind, samples }: { readonly kind: string; readonly samples: readonly Piece[] },
  scale: Scale,
  palette: Palette,
): void {
  painter.begin();
  const areMoments = kind === "samples" || kind === "sampled_frames";
  for (const piece of pieces) {
    if (areMoments) painter.addMoments(piece, scale, palette);
    else painter.add(piece, scale, palette);
  }
  if (kind === "sampled_frames") painter.fade(samples, scale);
}

/** How many pixels of each `period` are in a stripe. */
export function stripeOf(period: number): number {
  return Math.max(Math.round(period * STRIPE_PART), 1);
}

/** How opaque a pixel is of which this part is covered, 0 to 255. */
export function opacityOf(part: number): number {
  if (part >= 1) return 255;
  return part <= 0 ? 0 : (ALPHA_MIN + 0.5 + (255 - ALPHA_MIN) * part) | 0;
}
