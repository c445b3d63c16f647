import { expect, test } from "vitest";
import { tipPlace } from "./tip_place";

const TIP = { width: 300, height: 60 };
const ROOM = { width: 1000, height: 280 };

test("the tooltip stands right of the pointer and below it, else on the other side", () => {
  expect(tipPlace({ x: 100, y: 50 }, TIP, ROOM)).toEqual({ left: 114, top: 64 });
  expect(tipPlace({ x: 900, y: 50 }, TIP, ROOM)).toEqual({ left: 586, top: 64 });
  expect(tipPlace({ x: 100, y: 250 }, TIP, ROOM)).toEqual({ left: 114, top: 176 });
  expect(tipPlace({ x: 900, y: 250 }, TIP, ROOM)).toEqual({ left: 586, top: 176 });
});

test("it never leaves its room, as long as it fits", () => {
  for (let x = 0; x <= ROOM.width; x += 7) {
    for (let y = 0; y <= ROOM.height; y += 7) {
      const { left, top } = tipPlace({ x, y }, TIP, ROOM);
      expect(Math.min(left, top)).toBeGreaterThanOrEqual(0);
      expect(left + TIP.width).toBeLessThanOrEqual(ROOM.width);
      expect(top + TIP.height).toBeLessThanOrEqual(ROOM.height);
    }
  }
  expect(tipPlace({ x: 150, y: 20 }, TIP, { width: 200, height: 40 })).toEqual({ left: 0, top: 0 });
});
