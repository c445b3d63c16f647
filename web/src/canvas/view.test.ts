import { expect, test } from "vitest";
import { tileSpan } from "./tile";
import { around, clampView, levelOf, moved, revealing, Scale, tilesOf, zoomed } from "./view";

const SPAN = { start_ns: 0, end_ns: 1000 };

test("zooming keeps what is at the pointer", () => {
  const view = { start_ns: 100, end_ns: 300 };
  for (const factor of [0.3, 1, 1.5, 40]) {
    const next = zoomed(view, factor, 150);
    const share = (span: typeof view) => (150 - span.start_ns) / (span.end_ns - span.start_ns);
    expect(share(next)).toBeCloseTo(share(view), 12);
    expect(next.end_ns - next.start_ns).toBeCloseTo(200 / factor, 9);
  }
});

test("a window cannot leave the run, nor be longer or shorter than it can be shown", () => {
  expect(clampView({ start_ns: -500, end_ns: -300 }, SPAN)).toEqual({ start_ns: -20, end_ns: 180 });
  expect(clampView({ start_ns: 2000, end_ns: 2200 }, SPAN)).toEqual({ start_ns: 820, end_ns: 1020 });
  expect(clampView({ start_ns: -1e9, end_ns: 1e9 }, SPAN)).toEqual({ start_ns: -20, end_ns: 1020 });
  expect(clampView({ start_ns: 10, end_ns: 10 }, SPAN)).toEqual({ start_ns: 2, end_ns: 18 });
  expect(clampView({ start_ns: 200, end_ns: 400 }, SPAN)).toEqual({ start_ns: 200, end_ns: 400 });
});

test("a run of no length can be shown", () => {
  const view = clampView({ start_ns: 0, end_ns: 0 }, { start_ns: 5, end_ns: 5 });
  expect(view.end_ns).toBeGreaterThan(view.start_ns);
});

test("a place is the place of its time", () => {
  const scale = new Scale({ start_ns: 100, end_ns: 300 }, 400);
  expect(scale.x(150)).toBe(100);
  for (const x of [0, 13.5, 400]) expect(scale.x(scale.time(x))).toBeCloseTo(x, 9);
});

test("a bin is about a pixel", () => {
  for (const ns_per_px of [1, 1.5, 2, 3.99, 4, 1e3, 123456.7, 1e9]) {
    const bin = 2 ** levelOf(ns_per_px);
    expect(bin).toBeLessThanOrEqual(ns_per_px * Math.SQRT2);
    expect(bin).toBeGreaterThanOrEqual(ns_per_px / Math.SQRT2);
  }
  expect(levelOf(0.01)).toBe(0);
  expect(levelOf(Number.MAX_VALUE)).toBe(43);
});

test("tiles are those that a window touches", () => {
  const span = tileSpan(3);
  expect(tilesOf({ start_ns: 0, end_ns: span }, 3)).toEqual({ first: 0, last: 0 });
  expect(tilesOf({ start_ns: -5, end_ns: span + 1 }, 3)).toEqual({ first: 0, last: 1 });
  expect(tilesOf({ start_ns: span * 2, end_ns: span * 2 + 1 }, 3)).toEqual({ first: 2, last: 2 });
  expect(tilesOf({ start_ns: -50, end_ns: -5 }, 3)).toEqual({ first: 0, last: 0 });
});

test("what is outside comes into the window, what is inside moves nothing", () => {
  const view = { start_ns: 100, end_ns: 200 };
  expect(revealing(view, { start_ns: 120, end_ns: 130 })).toBe(view);
  expect(revealing(view, { start_ns: 300, end_ns: 310 })).toEqual({ start_ns: 255, end_ns: 355 });
  expect(revealing(view, { start_ns: 500, end_ns: 900 })).toEqual({ start_ns: 490, end_ns: 590 });
  expect(revealing(view, { start_ns: 0, end_ns: 900 })).toBe(view);
  expect(moved(view, 5)).toEqual({ start_ns: 105, end_ns: 205 });
  expect(around({ start_ns: 100, end_ns: 200 })).toEqual({ start_ns: 90, end_ns: 210 });
});
