import { expect, test } from "vitest";
import { Kept } from "./kept";

test("what was not used for longest goes first", () => {
  const kept = new Kept<number>(2);
  kept.set("a", 1);
  kept.set("b", 2);
  expect(kept.get("a")).toBe(1);
  kept.set("c", 3);
  expect([kept.get("a"), kept.get("b"), kept.get("c"), kept.size]).toEqual([1, undefined, 3, 2]);
});
