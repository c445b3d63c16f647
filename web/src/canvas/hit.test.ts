import { expect, test } from "vitest";
import { encodeTiles } from "../../tests/encode_tiles";
import { hitIn } from "./hit";
import { piecesOf } from "./pieces";
import { decodeTiles, FLAG_SEVERAL } from "./tile";
import { Scale } from "./view";

const tile = decodeTiles(
  encodeTiles([
    [
      { start_ns: 10, dur_ns: 20, name: "a", slice: 4 },
      { start_ns: 31, dur_ns: 1, name: "b", slice: 5 },
      { start_ns: 60, dur_ns: 8, busy_ns: 5, name: "c", slice: 6, count: 9, flags: FLAG_SEVERAL },
      { start_ns: 90, dur_ns: 1, name: "", slice: 0xffffffff },
    ],
  ]),
)[0];
const view = { start_ns: 0, end_ns: 100 };
const pieces = piecesOf(() => tile, view, 0);
const at = (x: number, width = 100) => hitIn(3, pieces, new Scale(view, width), x);

test("an item is hit where it is, and a little beside it", () => {
  expect(at(15)?.name).toBe("a");
  expect(at(31.5)?.name).toBe("b");
  expect(at(34)?.name).toBe("b");
  expect(at(7)?.name).toBe("a");
  expect(at(6)).toBe(null);
  expect(at(45)).toBe(null);
});

test("the nearer of two is hit", () => {
  expect(at(30.2)?.name).toBe("a");
  expect(at(30.8)?.name).toBe("b");
});

test("what is hit is told whole", () => {
  expect(at(64)).toEqual({
    row: 3,
    name: "c",
    class: 0,
    start_ns: 60,
    dur_ns: 8,
    busy_ns: 5,
    slice: 6,
    count: 9,
    isSeveral: true,
    isUnfinished: false,
  });
  expect(at(90)?.slice).toBe(null);
});

test("reach is in pixels, not in time", () => {
  expect(at(400, 1000)?.name).toBeUndefined();
  expect(at(341, 1000)?.name).toBeUndefined();
  expect(at(322, 1000)?.name).toBe("b");
});
