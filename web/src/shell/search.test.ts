import { expect, test } from "vitest";
import { found } from "./search";

const ALL = [
  { title: "Overview", about: "steps and kernels", href: "1" },
  { title: "idle_causes", about: "why devices idle", href: "2" },
  { title: "Kernels", about: "their times", href: "3" },
];

test("titles come before descriptions, and every word counts", () => {
  const hrefs = (typed: string) => found(ALL, typed).map((destination) => destination.href);
  expect(hrefs("")).toEqual(["1", "2", "3"]);
  expect(hrefs("KERN")).toEqual(["3", "1"]);
  expect(hrefs("causes idle")).toEqual(["2"]);
  expect(hrefs("idle_causes")).toEqual(["2"]);
  expect(hrefs("kernels nothing")).toEqual([]);
});
