import { expect, test } from "vitest";
import { placeAfter } from "./cursor";

test("keys reach every place, and none beyond", () => {
  const after = (at: number | null, ...keys: string[]) =>
    keys.reduce<number | null>((at, key) => placeAfter(key, at, 50), at);
  expect(after(null, "ArrowRight")).toBe(0);
  expect(after(0, "ArrowRight", "ArrowUp")).toBe(2);
  expect(after(2, "ArrowLeft", "ArrowDown", "ArrowLeft")).toBe(0);
  expect([after(10, "PageUp"), after(10, "PageDown"), after(10, "Home"), after(10, "End")]).toEqual([13, 7, 0, 49]);
  expect(after(49, "ArrowRight")).toBe(49);
  expect([placeAfter("w", 3, 50), placeAfter("ArrowRight", null, 0)]).toEqual([null, null]);
});
