import { expect, test } from "vitest";
import type { RunDetail } from "../api/types";
import { setParams } from "../state/route";
import { detail } from "../state/runs";
import { evidencePage, timelineAt } from "./links";

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

test("a link to a slice leads to the timeline of its rank, where it shows one", () => {
  Object.assign(globalThis, { history: { pushState: () => {} } });
  const slice = { rank: 1, start_ns: 5, name: "mm" };
  detail.value = { shows_all: true } as RunDetail;
  setParams({ rank: "3" });
  expect(timelineAt(slice)).toBe("#timeline?rank=3&at=5&at-rank=1&at-name=mm");
  detail.value = { shows_all: false } as RunDetail;
  expect(timelineAt(slice)).toBe("#timeline?rank=1&at=5&at-rank=1&at-name=mm");
  expect(timelineAt({ start_ns: 5 })).toBe("#timeline?rank=3&at=5");
});
