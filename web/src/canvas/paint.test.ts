import { expect, test } from "vitest";
import { encodeTiles, itemsOf, type Slices } from "../../tests/encode_tiles";
import { opacityOf, paintRow, StripPainter, stripeOf } from "./paint";
import { piecesOf } from "./pieces";
import { decodeTiles, FLAG_SEVERAL, type Tile, tileSpan } from "./tile";
import { Scale, type Span, tilesOf } from "./view";

const palette = {
  coloursOf: (tile: Tile) => Uint32Array.from(tile.name, (name) => Number(tile.names.text(name))),
};

/** Numbers that look random and are the same each time. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function slicesOf(next: () => number, count: number, scale_ns: number): Slices[] {
  const slices: Slices[] = [];
  let at = Math.floor(next() * scale_ns);
  for (let id = 0; id < count; id++) {
    const dur_ns = Math.floor(next() ** 4 * scale_ns) + 1;
    slices.push({ start_ns: at, dur_ns, name: String(id + 1) });
    at += dur_ns + (next() < 0.4 ? 0 : Math.floor(next() ** 3 * scale_ns));
  }
  return slices;
}

function tileAt(slices: readonly Slices[], level: number, tile: number): Tile {
  const decoded = decodeTiles(encodeTiles([itemsOf(slices, level, tile)]))[0];
  if (!decoded) throw new Error("no tile");
  return decoded;
}

/** What the line is, pixel by pixel, from everything that the tiles of a level have to say. */
function slowLine(slices: readonly Slices[], level: number, view: Span, width: number) {
  const scale = new Scale(view, width);
  const { first, last } = tilesOf(view, level);
  const seen = new Set<number>();
  const items: { left: number; right: number; share: number; colour: number; isSeveral: boolean }[] = [];
  const edges = new Set<number>();
  for (let tile = first; tile <= last; tile++) {
    for (const item of itemsOf(slices, level, tile)) {
      if (seen.has(item.slice ?? 0)) continue;
      seen.add(item.slice ?? 0);
      const low = Math.max(item.start_ns, view.start_ns);
      const high = Math.min(item.start_ns + item.dur_ns, view.end_ns);
      if (high <= low) continue;
      if (low === item.start_ns && item.dur_ns >= 4 * scale.ns_per_px) edges.add(Math.floor(scale.x(low)));
      const share = (item.busy_ns ?? item.dur_ns) / item.dur_ns;
      const isSeveral = item.flags === FLAG_SEVERAL;
      items.push({ left: scale.x(low), right: scale.x(high), share, colour: Number(item.name), isSeveral });
    }
  }
  return Array.from({ length: width }, (_, x) => {
    let cover = 0;
    let best = 0;
    let second = 0;
    let winner: (typeof items)[number] | undefined;
    for (const item of items) {
      const part = Math.max(Math.min(item.right, x + 1) - Math.max(item.left, x), 0) * item.share;
      cover += part;
      if (part > best) {
        second = best;
        best = part;
        winner = item;
      } else if (part > second) second = part;
    }
    return { cover, winner, isClear: best - second > 1e-4, isEdge: edges.has(x) };
  });
}

test("a row of tiles is painted as the slow painter paints it", () => {
  let pixels = 0;
  let groups = 0;
  for (let seed = 1; seed <= 300; seed++) {
    const next = random(seed);
    const slices = slicesOf(next, 1 + Math.floor(next() * 120), 10 ** (1 + next() * 4));
    const end = (slices.at(-1)?.start_ns ?? 0) + (slices.at(-1)?.dur_ns ?? 0);
    const level = Math.floor(next() * 9);
    const width = 1 + Math.floor(next() * 90);
    const start_ns = next() * end * 0.8;
    const view = { start_ns, end_ns: start_ns + width * 2 ** level * (1 + next()) };
    const { first, last } = tilesOf(view, level);

    const tiles = new Map<number, Tile>();
    for (let tile = first; tile <= last; tile++) tiles.set(tile, tileAt(slices, level, tile));
    const painter = new StripPainter(width);
    painter.begin();
    const scale = new Scale(view, width);
    for (const piece of piecesOf((at, tile) => (at === level ? tiles.get(tile) : undefined), view, level)) {
      painter.add(piece, scale, palette);
    }
    const out = new Uint32Array(width * 2);
    painter.finish(out, 0);

    slowLine(slices, level, view, width).forEach(({ cover, winner, isClear, isEdge }, x) => {
      const pixel = out[x] ?? 0;
      const foot = out[width + x] ?? 0;
      const where = `seed ${seed}, pixel ${x} of ${width}`;
      if (cover === 0) {
        expect(pixel, where).toBe(0);
        return;
      }
      pixels++;
      const alpha = pixel >>> 24;
      const whole = isEdge ? opacityOf(cover) >> 1 : opacityOf(cover);
      expect(Math.abs(alpha - whole), `${where}: ${alpha} for ${cover}`).toBeLessThanOrEqual(1);
      if (!isClear) return;
      expect(pixel & 0xffffff, where).toBe(winner?.colour);
      expect(foot >>> 24, where).toBe(winner?.isSeveral ? alpha >> 1 : alpha);
      if (winner?.isSeveral) groups++;
    });
  }
  expect(pixels).toBeGreaterThan(5000);
  expect(groups).toBeGreaterThan(300);
});

test("where nothing happens nothing is painted", () => {
  const slices = [{ start_ns: 100, dur_ns: 50, name: "7" }];
  const view = { start_ns: 0, end_ns: 300 };
  const painter = new StripPainter(300);
  painter.begin();
  for (const piece of piecesOf((level, tile) => tileAt(slices, level, tile), view, 0)) {
    painter.add(piece, new Scale(view, 300), palette);
  }
  const out = new Uint32Array(600);
  painter.finish(out, 0);
  const painted = [...out.subarray(0, 300)].map((pixel) => pixel !== 0);
  expect(painted.indexOf(true)).toBe(100);
  expect(painted.lastIndexOf(true)).toBe(149);
  // Its first pixel is its edge.
  expect((out[100] ?? 0) >>> 24).toBe(127);
  expect((out[101] ?? 0) >>> 24).toBe(255);
});

test("a tile that is not there is painted from the one above, in its own part only", () => {
  const slices = [0, 1, 2, 3].map((at) => ({ start_ns: at * 512, dur_ns: 512, name: String(at + 1) }));
  const view = { start_ns: 0, end_ns: 2048 };
  const known = (level: number, tile: number) =>
    (level === 0 && tile !== 1) || level === 2 ? tileAt(slices, level, tile) : undefined;
  const pieces = piecesOf(known, view, 0);
  expect(pieces.map((piece) => [piece.from_ns, piece.to_ns, piece.isFirst])).toEqual([
    [0, 512, true],
    [512, 1024, true],
    [1024, 2048, true],
    [1024, 2048, false],
  ]);
  const painter = new StripPainter(4);
  painter.begin();
  for (const piece of pieces) painter.add(piece, new Scale(view, 4), palette);
  const out = new Uint32Array(8);
  painter.finish(out, 0);
  expect([...out.subarray(0, 4)].map((pixel) => pixel & 0xffffff)).toEqual([1, 2, 3, 4]);
  expect(tileSpan(0)).toBe(512);
});

test("a slice of no length is seen", () => {
  const tile = decodeTiles(encodeTiles([[{ start_ns: 10, dur_ns: 0, name: "3" }]]))[0];
  const view = { start_ns: 0, end_ns: 100 };
  const painter = new StripPainter(100);
  painter.begin();
  for (const piece of piecesOf(() => tile, view, 0)) painter.add(piece, new Scale(view, 100), palette);
  const out = new Uint32Array(200);
  painter.finish(out, 0);
  expect([...out.subarray(0, 100)].filter((pixel) => pixel !== 0)).toHaveLength(1);
  expect((out[10] ?? 0) & 0xffffff).toBe(3);
});

test("moments are as wide and as opaque at every zoom, and several are one", () => {
  const slices = [10, 40, 40, 70].map((start_ns, nth) => ({ start_ns, dur_ns: 0, name: String(nth + 1) }));
  const painted = (end_ns: number, level: number) => {
    const tile = decodeTiles(encodeTiles([itemsOf(slices, level, 0)]))[0];
    const view = { start_ns: 0, end_ns };
    const painter = new StripPainter(100);
    painter.begin();
    for (const piece of piecesOf(() => tile, view, level)) painter.addMoments(piece, new Scale(view, 100), palette);
    const out = new Uint32Array(200);
    painter.finish(out, 0);
    return [...out.subarray(0, 100)].flatMap((pixel, x) => (pixel === 0 ? [] : [[x, pixel >>> 24, pixel & 0xffffff]]));
  };
  const mark = (x: number, name: number) => [
    [x, 255, name],
    [x + 1, 255, name],
  ];
  expect(painted(100, 0)).toEqual([...mark(10, 1), ...mark(40, 2), ...mark(70, 4)]);
  // 10 ns are a pixel: three moments and a mark of two pixels each.
  expect(painted(1000, 0)).toEqual([...mark(1, 1), ...mark(4, 2), ...mark(7, 4)]);
});

test("frames of samples are pale between them, and their foot says where samples were taken", () => {
  const view = { start_ns: 0, end_ns: 100 };
  const piecesFor = (slices: readonly Slices[]) =>
    piecesOf(() => decodeTiles(encodeTiles([itemsOf(slices, 0, 0)]))[0], view, 0);
  const moments = [10, 30, 60, 90].map((start_ns) => ({ start_ns, dur_ns: 0, name: "1" }));
  // A block of the first two samples, and one of the third; the fourth does not have a frame of this depth.
  const blocks = [
    { start_ns: 10, dur_ns: 20, name: "7" },
    { start_ns: 60, dur_ns: 0, name: "8" },
  ];
  const painter = new StripPainter(100);
  const samples = piecesFor(moments);
  paintRow(painter, piecesFor(blocks), { kind: "sampled_frames", samples }, new Scale(view, 100), palette);
  const out = new Uint32Array(200);
  painter.finish(out, 0);
  const shown = (line: number) => [...out.subarray(line * 100, line * 100 + 100)];
  const places = (line: number, is: (alpha: number) => boolean) =>
    shown(line).flatMap((pixel, x) => (is(pixel >>> 24) ? [x] : []));
  const block = [...Array.from({ length: 21 }, (_, nth) => 10 + nth), 60, 61];
  expect(places(0, (alpha) => alpha > 0 && alpha < 128)).toEqual(block);
  expect(places(0, (alpha) => alpha >= 128)).toEqual([]);
  expect(places(1, (alpha) => alpha === 255)).toEqual([10, 11, 30, 60, 61]);
  expect(places(1, (alpha) => alpha > 0)).toEqual(block);
  expect([10, 30, 60].map((x) => (shown(1)[x] ?? 0) & 0xffffff)).toEqual([7, 7, 8]);
});

test("an average is hatched: its stripes slant, repeat downwards, and take nothing of what is between them", () => {
  const bins = [
    { start_ns: 0, dur_ns: 20, busy_ns: 20, name: "5" },
    { start_ns: 20, dur_ns: 20, busy_ns: 5, name: "5" },
  ];
  const tile = decodeTiles(encodeTiles([bins]))[0];
  const view = { start_ns: 0, end_ns: 60 };
  const [width, period] = [60, 6];
  const painter = new StripPainter(width);
  painter.begin();
  for (const piece of piecesOf(() => tile, view, 0)) painter.add(piece, new Scale(view, width), palette);
  const out = new Uint32Array(width * (period + 1)).fill(7);
  painter.finishHatched(out, 0, period);
  const alphas = (line: number, from: number, to: number) =>
    [...out.subarray(line * width + from, line * width + to)].map((pixel) => pixel >>> 24);
  for (let line = 0; line < period; line++) {
    // Two pixels of six, one further to the left in each line.
    const full = [0, 1, 2, 3, 4, 5].map((x) => ((x + line) % 6 < 2 ? 178 : 255));
    expect(alphas(line, 6, 12), `line ${line}`).toEqual(full);
    expect(alphas(line, 12, 18), `line ${line}`).toEqual(full);
    expect(new Set(alphas(line, 24, 36))).toEqual(new Set([opacityOf(0.25), Math.floor(opacityOf(0.25) * 0.7)]));
    expect(alphas(line, 40, 60).every((alpha) => alpha === 0)).toBe(true);
  }
  expect(new Set([...out.subarray(0, 40)].map((pixel) => pixel & 0xffffff))).toEqual(new Set([5]));
  // What stands behind is another row's.
  expect([...out.subarray(width * period)].every((pixel) => pixel === 7)).toBe(true);
  expect([2, 3, 6, 12].map(stripeOf)).toEqual([1, 1, 2, 4]);
});
