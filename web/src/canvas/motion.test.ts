import { expect, test } from "vitest";
import { Motion } from "./motion";

const LIMITS = { start_ns: 0, end_ns: 1000 };
const START = { start_ns: 400, end_ns: 600 };
const easing = () => new Motion(START, LIMITS, () => false);
const reduced = () => new Motion(START, LIMITS, () => true);
const length = (motion: Motion) => motion.view.end_ns - motion.view.start_ns;

test("the window comes nearer with each frame, arrives, and rests", () => {
  const motion = easing();
  motion.to({ start_ns: 100, end_ns: 200 });
  let before = motion.view.start_ns;
  let frames = 0;
  while (motion.tick(16)) {
    expect(motion.view.start_ns).toBeLessThan(before);
    before = motion.view.start_ns;
    expect(++frames).toBeLessThan(100);
  }
  expect(frames).toBeGreaterThan(3);
  expect(motion.view).toEqual({ start_ns: 100, end_ns: 200 });
  expect(motion.isMoving).toBe(false);
  expect(motion.tick(16)).toBe(false);
});

test("a held key moves until it is let go", () => {
  const motion = easing();
  motion.press("in");
  motion.tick(50);
  const zoomedIn = length(motion);
  expect(zoomedIn).toBeLessThan(200);
  motion.tick(50);
  expect(length(motion)).toBeLessThan(zoomedIn);
  motion.release("in");
  while (motion.tick(16));
  const rest = length(motion);
  motion.tick(1000);
  expect(length(motion)).toBe(rest);
});

test("keys zoom at the pointer", () => {
  const motion = easing();
  motion.pointer_ns = 450;
  motion.press("in");
  for (let at = 0; at < 20; at++) motion.tick(16);
  motion.releaseAll();
  while (motion.tick(16));
  expect((450 - motion.view.start_ns) / length(motion)).toBeCloseTo(0.25, 2);
});

test("where less motion is wanted everything happens at once", () => {
  const motion = reduced();
  motion.press("right");
  expect(motion.view).toEqual({ start_ns: 450, end_ns: 650 });
  expect(motion.isMoving).toBe(false);
  motion.press("in");
  expect(length(motion)).toBeCloseTo(200 / 1.5, 9);
  motion.to(START);
  expect(motion.view).toEqual(START);
});

test("the window stays in the run", () => {
  const motion = easing();
  motion.press("left");
  for (let at = 0; at < 500; at++) motion.tick(16);
  expect(motion.view.start_ns).toBe(-20);
});
