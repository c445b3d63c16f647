import { expect, test } from "vitest";
import type { Scene } from "../scene";
import { Scale } from "../view";
import { drawRuler } from "./ruler";

const LETTER = 6;
const WIDTH = 730;

/** The labels that are drawn, each with where it begins and ends. */
function labels(start_ns: number, end_ns: number): { text: string; left: number; right: number }[] {
  const drawn: { text: string; left: number; right: number }[] = [];
  const fillText = (text: string, left: number) => drawn.push({ text, left, right: left + text.length * LETTER });
  const scene = {
    context: { fillText, fillRect: () => {} },
    width: WIDTH,
    scale: new Scale({ start_ns, end_ns }, WIDTH),
    zero_ns: 0,
    steps: [],
    colours: { theme: {} },
  } as unknown as Scene;
  drawRuler(scene, (text) => text.length * LETTER);
  return drawn;
}

test("no label of the ruler is cut, and none lies on another", () => {
  for (const start_ns of [0, 37, 111_699_300, 4_123_456_789]) {
    for (const length of [90, 1_700, 29_000, 480_000, 7_300_000, 1_010_000_000]) {
      const drawn = labels(start_ns, start_ns + length);
      expect(drawn.length).toBeGreaterThan(1);
      drawn.forEach(({ left, right }, at) => {
        expect(right).toBeLessThanOrEqual(WIDTH);
        expect(left).toBeGreaterThanOrEqual(drawn[at - 1]?.right ?? 0);
      });
    }
  }
});

test("the part that all labels share stands at the left, once", () => {
  const [base, ...marks] = labels(111_699_300, 111_728_300).map(({ text }) => text);
  expect(base).toBe("111 ms");
  expect(marks.every((text) => /^\+7\d\d µs$/.test(text))).toBe(true);
});
