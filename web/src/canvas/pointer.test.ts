import { expect, test } from "vitest";
import type { Hit } from "./hit";
import { nearestEdge } from "./pointer";
import { Scale } from "./view";

const scale = new Scale({ start_ns: 0, end_ns: 1_000 }, 100);
const hit = (start_ns: number, dur_ns: number, isSeveral = false) => ({ start_ns, dur_ns, isSeveral }) as Hit;

test("an end of a range is the edge of a slice that is near", () => {
  expect(nearestEdge([hit(200, 300)], scale, 22)).toBe(200);
  expect(nearestEdge([hit(200, 300)], scale, 47)).toBe(500);
  expect(nearestEdge([hit(200, 300), hit(480, 20)], scale, 48)).toBe(480);
  expect(nearestEdge([hit(200, 300)], scale, 30)).toBeNull();
  expect(nearestEdge([hit(200, 300, true)], scale, 20)).toBeNull();
  expect(nearestEdge([], scale, 20)).toBeNull();
});
