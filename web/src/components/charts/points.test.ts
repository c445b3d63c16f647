import { expect, test } from "vitest";
import { closest, pointsOf, withRoom } from "./points";

test("points come from left to right, without rows that have no number", () => {
  const rows = [
    { x: 3, y: 1n },
    { x: null, y: 2 },
    { x: -1n, y: 2.5 },
    { x: 2, y: null },
    { x: 3, y: 0 },
  ];
  expect(pointsOf(rows, "x", "y")).toEqual({ xs: [-1, 3, 3], ys: [2.5, 1, 0], rows: [rows[2], rows[0], rows[4]] });
  expect(pointsOf([], "x", "y")).toEqual({ xs: [], ys: [], rows: [] });
});

test("the closest point is that on the screen", () => {
  const points = { xs: [0, 10, 10, 12], ys: [0, 5, 50, 5], rows: [] };
  expect(closest(points, { x: 11.5, y: 40 }, { x: 1, y: 1 })).toBe(2);
  // Where one of x is a thousand pixels.
  expect(closest(points, { x: 11.5, y: 40 }, { x: 1000, y: 1 })).toBe(3);
  expect(closest({ xs: [], ys: [], rows: [] }, { x: 0, y: 0 }, { x: 1, y: 1 })).toBe(-1);
});

test("there is room around points, also around one alone", () => {
  expect(withRoom(100, 200)).toEqual([96, 204]);
  expect(withRoom(0, 100)).toEqual([0, 104]);
  expect(withRoom(-100, 0)).toEqual([-104, 4]);
  expect(withRoom(50, 50)).toEqual([45, 55]);
  expect(withRoom(0, 0)).toEqual([0, 1]);
});
