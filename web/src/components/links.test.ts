import { expect, test } from "vitest";
import type { RunDetail } from "../api/types";
import { setParams } from "../state/route";
import { detail } from "../state/runs";
import { calledBy, evidencePage, linksOfName, placeOf, timelineAt, timelineOfAdvice, timelineOver } from "./links";

test("an analysis is shown on the page that is about it, else as a table", () => {
  const pages = ["operators", "graphs", "memory_peak", "memory_summary", "io_files", "step_breakdown", "constructor"];
  expect(pages.map(evidencePage)).toEqual([
    "#operators",
    "#efficiency",
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

test("a link to a stretch of time has a window of which the stretch is half, however short it is", () => {
  Object.assign(globalThis, { history: { pushState: () => {} } });
  setParams({ rank: null });
  const gap = { rank: 1, start_ns: 1_000n, length_ns: 40n };
  const known = (shows_all: boolean, ranks: unknown[]) => ({ shows_all, ranks }) as unknown as RunDetail;
  detail.value = known(true, [{}]);
  expect(timelineOver(gap)).toBe("#timeline?view=980-1060&range=1000-1040");
  // A range among the events of several ranks would have the sums of all.
  detail.value = known(true, [{}, {}]);
  expect(timelineOver(gap)).toBe("#timeline?view=980-1060&at=1000&at-rank=1");
  detail.value = known(false, [{}, {}]);
  expect(timelineOver(gap)).toBe("#timeline?rank=1&view=980-1060&range=1000-1040");
  // A moment has no length that could fill anything.
  expect(timelineOver({ ...gap, length_ns: 0 })).toBe("#timeline?rank=1&at=1000&at-rank=1");
});

test("a link of advice shows its slice, else as much as a step is long", () => {
  const span = { start_ns: 0, end_ns: 8_000 };
  detail.value = { shows_all: true, span, steps: { count: 40 } } as unknown as RunDetail;
  expect(timelineOfAdvice({ rank: 0, start_ns: 400, slice: "mm" })).toBe("#timeline?at=400&at-rank=0&at-name=mm");
  expect(timelineOfAdvice({ rank: 0, start_ns: 400, slice: null })).toBe("#timeline?view=300-700");
  expect(timelineOfAdvice({ rank: 0, start_ns: null, slice: null })).toBe(null);
  detail.value = { shows_all: true, span, steps: { count: 0 } } as unknown as RunDetail;
  expect(timelineOfAdvice({ rank: 0, start_ns: 400, slice: null })).toBe("#timeline?view=200-1000");
});

test("a name leads to its page, to who calls it, and to the timeline, by what it is of", () => {
  Object.assign(globalThis, { history: { pushState: () => {} } });
  detail.value = { shows_all: true } as RunDetail;
  setParams({ rank: null });
  const links = (kind: string, name: string) => linksOfName(kind, name).map(({ label, href }) => `${label} ${href}`);
  expect(links("op", "mm")).toEqual([
    "In Operators #operators?where=name%3Aeq%3Amm",
    "Who calls it #calls?direction=callers&find=mm",
    "Its calls on the timeline #timeline?q=mm",
  ]);
  expect(links("kernel", "gemm")[1]).toBe("Who launches it #calls?direction=callers&find=gemm");
  expect(links("module", "Linear_0").slice(0, 2)).toEqual([
    "In Modules #modules?where=name%3Aeq%3ALinear_0",
    "What it calls, down to kernels #calls?find=Linear_0&layers=no",
  ]);
  expect(links("python", "a/b.py(12): f")[0]).toBe("The code #source?file=a%2Fb.py&line=12");
  expect(links("python", "<built-in method mm>")[0]).toContain("Who calls it");
  expect(placeOf("<string>(1): <module>")).toBe(null);
  expect(calledBy("operators", "a.b", true)).toBe("#operators?group=module&where=module%3Ahas%3Aa.b.");
  expect(calledBy("kernels", "a.b")).toBe("#kernels?group=module&where=module%3Aeq%3Aa.b");
});
