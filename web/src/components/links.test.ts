import { expect, test } from "vitest";
import { evidencePage } from "./links";

test("an analysis is shown on the page that is about it, else as a table", () => {
  const pages = ["operators", "memory_peak", "memory_summary", "io_files", "step_breakdown", "constructor"];
  expect(pages.map(evidencePage)).toEqual([
    "#operators",
    "#memory",
    "#memory",
    "#io",
    "#tables?analysis=step_breakdown",
    "#tables?analysis=constructor",
  ]);
});
