import { expect, test } from "vitest";
import { readPlace, resized } from "./panel_place";

const UNASKED = { isRight: false, isShut: false, below: 240, right: 420 };

test("what was kept is taken as far as it makes sense", () => {
  expect(readPlace(null)).toEqual(UNASKED);
  expect(readPlace("{")).toEqual(UNASKED);
  expect(readPlace("7")).toEqual(UNASKED);
  expect(readPlace('{"isRight":true,"below":-3,"right":500}')).toEqual({ ...UNASKED, isRight: true, right: 500 });
});

test("the panel keeps a least size, and leaves room for the canvas", () => {
  expect(resized(UNASKED, 300, 1_000).below).toBe(300);
  expect(resized(UNASKED, 3, 1_000).below).toBe(80);
  expect(resized({ ...UNASKED, isRight: true }, 950, 1_000)).toEqual({ ...UNASKED, isRight: true, right: 800 });
});
