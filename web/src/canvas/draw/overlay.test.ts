import { expect, test } from "vitest";
import { joinedOf } from "../joined";
import type { Mark } from "../marks";
import type { PartOfRank } from "../model";
import type { Placed, Scene } from "../scene";
import { Scale } from "../view";
import { drawOverlay } from "./overlay";

/** What is filled while a range over `rows` is drawn, as `top+height` of everything wider than a line. */
function veils(rows: readonly number[], said: string[] = []): string[] {
  const filled: string[] = [];
  const fillRect = (_x: number, y: number, width: number, height: number) => {
    if (width > 1) filled.push(`${y}+${height}`);
  };
  const range = { start_ns: 20, end_ns: 60, rows };
  const scene = {
    // Words have a ground of their own, which is no veil.
    context: { fillRect, measureText: () => ({ width: -8 }), fillText: (words: string) => said.push(words) },
    width: 100,
    height: 200,
    scale: new Scale({ start_ns: 0, end_ns: 100 }, 100),
    colours: { theme: {} },
    emphasis: { hovered: null, selected: null, range, arrows: [], marks: [], joined: null },
  } as unknown as Scene;
  const line = (row: number | null, top: number) => ({ line: { key: `${top}`, row, height: 20, kind: "slices" }, top });
  drawOverlay(scene, [line(null, 40), line(7, 60), line(8, 80), line(9, 100)] as unknown as Placed[]);
  return filled;
}

test("a range lies over the rows that are summed up, or over all where it is of all", () => {
  // The ruler shows it in any case.
  expect(veils([7, 9])).toEqual(["60+20", "100+20", "0+40"]);
  expect(veils([])).toEqual(["0+200"]);
});

test("a range says how long it is", () => {
  const said: string[] = [];
  veils([7], said);
  expect(said).toEqual(["40 ns"]);
});

test("the parts of a collective are outlined on the rows and closed ranks that are seen, and joined from row to row", () => {
  const boxes: string[] = [];
  const bands: string[] = [];
  let path: string[] = [];
  const point = (x: number, y: number) => path.push(`${x},${y}`);
  const context = {
    strokeRect: (x: number, y: number, width: number) => boxes.push(`${x}+${width} at ${y}`),
    beginPath: () => {
      path = [];
    },
    moveTo: point,
    lineTo: point,
    fill: () => bands.push(path.join(" ")),
    stroke: () => {},
  };
  const part = (rank: number, start_ns: number, dur_ns: number, row: number, asked: number | null = null) =>
    ({
      rank,
      start_ns,
      dur_ns,
      slice: { id: row, row, rank, start_ns, dur_ns },
      asked_by: asked === null ? null : { id: asked, row: asked, rank, start_ns: start_ns - 5, dur_ns: 2 },
    }) as unknown as PartOfRank;
  const scene = {
    context,
    width: 100,
    height: 200,
    scale: new Scale({ start_ns: 0, end_ns: 100 }, 100),
    colours: { theme: {} },
    emphasis: {
      hovered: null,
      selected: null,
      range: null,
      arrows: [],
      marks: [],
      joined: joinedOf([part(0, 10, 30, 7, 6), part(1, 20, 20, 8), part(2, 30, 10, 9), part(3, 35, 5, 10)]),
    },
  } as unknown as Scene;
  const line = (rank: number, row: number, top: number, kind: string, isHeader: boolean) => ({
    line: { key: `${top}`, rank, row, height: 20, kind, isHeader },
    top,
  });
  const lines = [
    line(0, 6, 40, "slices", false),
    line(0, 7, 60, "slices", false),
    line(1, 18, 80, "projected", true),
    // Rows that are averages show no slice, and rank 3 is out of sight.
    line(2, 19, 100, "density", true),
  ];
  drawOverlay(scene, lines as unknown as Placed[]);
  expect([...new Set(boxes)]).toEqual(["5+2 at 40.5", "10+30 at 60.5", "20+20 at 80.5"]);
  expect(bands).toEqual(["10,80 40,80 40,80 20,80"]);
});

/** What stands beside marks on a canvas of 1,000 pixels and as many ns, on which a letter is 6 pixels wide. */
function beside(marks: readonly Mark[]): string[] {
  const said: string[] = [];
  const nothing = () => {};
  const context = {
    fillRect: nothing,
    beginPath: nothing,
    moveTo: nothing,
    lineTo: nothing,
    fill: nothing,
    measureText: (text: string) => ({ width: 6 * [...text].length }),
    fillText: (words: string) => said.push(words),
  };
  const scale = new Scale({ start_ns: 0, end_ns: 1000 }, 1000);
  const emphasis = { hovered: null, selected: null, range: null, arrows: [], marks, joined: null };
  drawOverlay({ context, width: 1000, height: 200, scale, colours: { theme: {} }, emphasis } as unknown as Scene, []);
  return said;
}

test("a mark has its number and its distance, and its note as far as there is room, cut in the middle", () => {
  const mark = (time_ns: number, note = "") => ({ time_ns, note });
  expect(beside([mark(5)])).toEqual([]);
  expect(beside([mark(5, "alone")])).toEqual(["1 · alone"]);
  expect(beside([mark(700, "<b>\u202e"), mark(100)])).toEqual(["1", "2 +600 ns · <b>\\u202e"]);
  const long = "the first step waits for its data";
  expect(beside([mark(0, long), mark(400)])).toEqual([`1 · ${long}`, "2 +400 ns"]);
  expect(beside([mark(0, long), mark(150)])).toEqual(["1 · the first… its data", "2 +150 ns"]);
  // No room for a word: the list of marks has it.
  expect(beside([mark(0, long), mark(40)])).toEqual(["1", "2 +40 ns"]);
  // Out of sight.
  expect(beside([mark(1200, long), mark(1400)])).toEqual([]);
});
