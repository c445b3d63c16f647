import { expect, test } from "vitest";
import { threadsOf } from "./threads";

test("each thread is there once, in the order of the rows, and the chosen one in any case", () => {
  const rows = ["b", "a", "b"].map((thread) => ({ thread }));
  expect(threadsOf(rows, undefined).map(([name]) => name)).toEqual(["b", "a"]);
  expect(threadsOf(rows, "gone").map(([name]) => name)).toEqual(["b", "a", "gone"]);
  expect(threadsOf([{ thread: null }, {}], undefined)).toEqual([]);
});

test("long names and what cannot be seen are shown as far as there is room", () => {
  const [[, words] = ["", ""]] = threadsOf([{ thread: `\u202e${"x".repeat(500)}` }], undefined);
  expect(words.startsWith("\\u202exxx")).toBe(true);
  expect(words.length).toBe(80);
  const many = Array.from({ length: 1000 }, (_, at) => ({ thread: `thread ${at}` }));
  expect(threadsOf(many, "thread 999").length).toBe(201);
});
