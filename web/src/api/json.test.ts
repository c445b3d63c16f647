import { expect, test } from "vitest";
import { parseExact } from "./json";

test("integers that a double holds are numbers, longer ones are exact", () => {
  const text = "[9007199254740991, 9007199254740993, -9223372036854775808, 1.5, 1e300, 0.1234567890123456789]";
  const expected = [9007199254740991, 9007199254740993n, -9223372036854775808n, 1.5, 1e300, 0.12345678901234568];
  expect(parseExact(text)).toEqual(expected);
});

test("digits inside of texts and keys stay text", () => {
  const value = { "9007199254740993": 'a "9007199254740993" \\ 9007199254740993', list: ["12345678901234567890"] };
  expect(parseExact(JSON.stringify(value))).toEqual(value);
});

test("a long text does not exhaust the stack", () => {
  const value = ['x\\n"'.repeat(500_000), "1234567890123456789"];
  expect(parseExact(JSON.stringify(value))).toEqual(value);
});

test("what is no JSON is an error", () => {
  expect(() => parseExact("{9007199254740993")).toThrow(SyntaxError);
});
