import { beforeEach, expect, test } from "vitest";
import type { Timeline } from "../../canvas/timeline";
import { clampView, type Span } from "../../canvas/view";
import { setParams } from "../../state/route";
import { formatSpan } from "../../state/timeline_params";
import { Steps } from "./steps";
import { Viewport } from "./viewport";

const RUN = { span: { start_ns: 0, end_ns: 100_000 }, focus: { start_ns: 20_000, end_ns: 80_000 } };
const STEP = { rank: 0, number: 3, start_ns: 50_000, end_ns: 60_000 };

/** What the page wrote, in order: `push` is a step of Back. */
let written: string[] = [];
beforeEach(() => {
  const write = (kind: string) => (_data: unknown, _title: string, url: string) => written.push(`${kind} ${url}`);
  Object.assign(globalThis, { history: { pushState: write("push"), replaceState: write("replace") } });
  setParams({ view: null, step: null, window: null });
  written = [];
});

/** A viewport that has begun, on a canvas that is wherever it is told to go. */
async function begun() {
  const answer = async () => [STEP] as unknown as Awaited<ReturnType<ConstructorParameters<typeof Steps>[0]>>;
  const steps = new Steps(answer, new AbortController().signal);
  await steps.load({ step: "3" });
  const viewport = new Viewport(RUN, steps);
  const motion = { goal: viewport.shown.peek() };
  const go = (view: Span) => {
    motion.goal = clampView(view, RUN.span);
  };
  viewport.follow({ motion, go, scale: { ns_per_px: 100 } } as unknown as Timeline);
  const rest = () => viewport.onRest(motion.goal);
  return { viewport, go, rest, shown: () => formatSpan(motion.goal) };
}

test("an address without a window is where the timeline begins, and resting there is not written", async () => {
  const { rest, shown } = await begun();
  expect(shown()).toBe("19400-80600");
  rest();
  expect(written).toEqual([]);
  setParams({ window: "1000-2000" });
  expect(shown()).toBe("950-2050");
  setParams({ view: "5-500" });
  expect(shown()).toBe("5-500");
});

test("a step is gone to where the address has no window", async () => {
  const { rest, shown } = await begun();
  setParams({ view: "5-500" });
  // A window beside a step in a link is what the link shows.
  setParams({ step: "3" });
  expect(shown()).toBe("5-500");
  setParams({ step: "3", view: null });
  expect(shown()).toBe("49800-60200");
  written = [];
  rest();
  expect(written).toEqual([]);
});

test("where a finger leaves the window is written, as a step of Back only when it is far", async () => {
  const { viewport, go, rest } = await begun();
  go({ start_ns: 20_000, end_ns: 81_200 });
  rest();
  expect(written).toEqual(["replace #overview?view=20000-81200"]);
  go({ start_ns: 20_000, end_ns: 30_000 });
  rest();
  expect(written.at(-1)).toBe("push #overview?view=20000-30000");
  viewport.go({ start_ns: 20_100, end_ns: 30_100 });
  expect(written.at(-1)).toBe("replace #overview?view=20100-30100");
});

test("small moves add up to a step of Back", async () => {
  const { go, rest } = await begun();
  setParams({ view: "10000-20000" });
  written = [];
  for (const start_ns of [12_000, 14_000, 16_000]) {
    go({ start_ns, end_ns: start_ns + 10_000 });
    rest();
  }
  expect(written.map((line) => line.split(" ")[0])).toEqual(["replace", "replace", "push"]);
});

test("a window that the address has already is gone to from wherever the canvas is on its way", async () => {
  const { viewport, go, shown } = await begun();
  setParams({ view: "10000-20000" });
  go({ start_ns: 0, end_ns: 100 });
  viewport.go({ start_ns: 10_000, end_ns: 20_000 });
  expect(shown()).toBe("10000-20000");
});

test("after what is shown comes the next: parts, what was in focus first, everything", async () => {
  const { viewport, shown } = await begun();
  const part = { start_ns: 40_000, end_ns: 41_000 };
  for (const next of ["-1000-101000", "40000-41000", "19400-80600", "-1000-101000"]) {
    viewport.fit([part]);
    expect(shown()).toBe(next);
  }
});

test("a speck is zoomed to, a moment in sight is not", async () => {
  const { viewport } = await begun();
  setParams({ view: "0-100000" });
  expect(viewport.revealing({ start_ns: 50_000, end_ns: 50_020 })).toEqual({ view: "49200-50820" });
  expect(viewport.revealing({ start_ns: 50_000, end_ns: 50_000 })).toEqual({});
  setParams({ view: "0-1000" });
  expect(viewport.revealing({ start_ns: 50_000, end_ns: 50_000 })).toEqual({ view: "49500-50500" });
});
