import { expect, test } from "vitest";
import { exactCell, formatCell, shortCell } from "./cell";

test("where there is little room a number has all digits or a unit, and its hover has all digits", () => {
  expect(shortCell("count", 21_338_880_000)).toBe("21.3 G");
  expect(shortCell("count", 9_223_372_036_854_775_807n)).toBe("9,223 P");
  expect(shortCell("count", 999_999_999)).toBe("999,999,999");
  expect(shortCell("plain", 1.5e12)).toBe("1.50 T");
  expect(shortCell("id", 12_345_678_901)).toBe("12345678901");
  expect(shortCell("text", "12345678901")).toBe("12345678901");
  expect([shortCell("count", null), shortCell("flag", true)]).toEqual(["–", "yes"]);
  expect(exactCell("count", 21_338_880_000)).toBe("21338880000");
});

test("a name of a megabyte is clipped in a cell and on its hover", () => {
  const name = "x".repeat(1_000_000);
  expect(formatCell("text", name).length).toBeLessThan(1000);
  expect(exactCell("text", name).length).toBeLessThan(10_000);
});
