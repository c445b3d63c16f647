// Frames of sampled stacks: below the samples of a thread, once its row is opened. What they should be is worked out here,
// from the samples alone.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import type { TimelineInfo, TimelineRow } from "../../src/canvas/model";
import { decodeTiles } from "../../src/canvas/tile";
import { formatNs } from "../../src/format/units";
import { at, open } from "./browser";
import { view } from "./stepscope";
import { asked, canvas, rowsOf, title } from "./timeline_page";
import { viewerOf } from "./viewer";
import { violations } from "./violations";

/** The stack of each sample, outermost first, every 20 ms from 10 ms on; none where it could not be read. */
const MAIN = "job.py(9): <module>";
const STACKS: readonly (readonly string[])[] = [
  [MAIN, "job.py(4): work"],
  [MAIN, "job.py(4): work", "other.py(3): helper"],
  [MAIN, "job.py(4): work", "other.py(3): helper"],
  [MAIN],
  [MAIN, "job.py(5): rest", "other.py(3): helper"],
  [],
  [MAIN, "job.py(4): work"],
  [MAIN, "job.py(4): work"],
  [MAIN, "job.py(5): rest"],
  [MAIN, "job.py(5): rest"],
];
const timeOf = (nth: number) => (10 + nth * 20) * 1e6;

interface Block {
  readonly start_ns: number;
  readonly dur_ns: number;
  readonly name: string;
}

/** The blocks of a depth: neighbouring samples that have the same frame there, and the same callers. */
function blocksOf(depth: number): Block[] {
  const blocks: { first: number; last: number }[] = [];
  STACKS.forEach((stack, nth) => {
    if (stack.length <= depth) return;
    const path = (of: readonly string[]) => of.slice(0, depth + 1).join(";");
    const last = blocks.at(-1);
    if (last?.last === nth - 1 && path(STACKS[nth - 1] ?? []) === path(stack)) last.last = nth;
    else blocks.push({ first: nth, last: nth });
  });
  return blocks.map(({ first, last }) => ({
    start_ns: timeOf(first),
    dur_ns: timeOf(last) - timeOf(first),
    name: STACKS[first]?.[depth] ?? "",
  }));
}

let folder = "";
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const viewer = viewerOf(async () => {
  folder = mkdtempSync(join(tmpdir(), "stepscope-frames-"));
  const place = { pid: 1, tid: 1 };
  const frames: { name: string; parent?: number }[] = [];
  const frameOf = (stack: readonly string[]): number =>
    stack.reduce((parent, name) => frames.push(parent > 0 ? { name, parent } : { name }), 0);
  const traceEvents = [
    { ph: "M", name: "thread_name", ...place, args: { name: "main" } },
    { ph: "X", cat: "user_annotation", name: "ProfilerStep#0", ...place, ts: 0, dur: 200_000 },
    { ph: "X", cat: "cpu_op", name: "aten::mm", ...place, ts: 55_000, dur: 10_000 },
    ...STACKS.map((stack, nth) => {
      const sf = stack.length > 0 ? { sf: frameOf(stack) } : {};
      return { ph: "P", name: "sample", ...place, ts: timeOf(nth) / 1e3, ...sf, args: { Stepscope: "running" } };
    }),
  ];
  const trace = join(folder, "trace.json");
  writeFileSync(
    trace,
    JSON.stringify({
      schemaVersion: 1,
      traceEvents,
      stackFrames: Object.fromEntries(frames.map((frame, at) => [at + 1, frame])),
    }),
  );
  return view([trace]);
});

async function frameRows(): Promise<TimelineRow[]> {
  const { groups } = (await (await asked(viewer.server, "api/runs/0/timeline")).json()) as TimelineInfo;
  return rowsOf(groups).filter(({ kind }) => kind === "sampled_frames");
}

test("each depth of the stacks is a row of blocks, which are what the samples say one by one", async () => {
  const rows = await frameRows();
  expect(rows.map(({ depth }) => depth)).toEqual([0, 1, 2]);
  const { version } = (await (await asked(viewer.server, "api/runs/0/timeline")).json()) as { version: number };
  for (const { id, depth, slices } of rows) {
    // A tile of level 20 is half a second: all of the trace.
    const answer = await asked(viewer.server, `api/runs/0/tiles?v=${version}&rows=${id}&level=20&first=0&count=1`);
    const [tile] = decodeTiles(await answer.arrayBuffer());
    if (!tile) throw new Error("no tile");
    const shown = Array.from({ length: tile.length }, (_, at) => ({
      start_ns: tile.start_ns[at],
      dur_ns: tile.dur_ns[at],
      name: tile.names.text(tile.name[at] ?? 0),
    }));
    expect(shown, `depth ${depth}`).toEqual(blocksOf(depth));
    expect(slices).toBe(shown.length);
  }
});

/** The rows of labels and of frames below the one of the samples, which is opened. */
async function opened(page: Page) {
  const label = page.locator(".timeline-label", { hasText: "main · samples" }).first();
  await label.waitFor();
  const before = await label.boundingBox();
  await label.getByRole("button").first().click();
  const area = await canvas(page).boundingBox();
  if (!before || !area) throw new Error("the row is not on the screen");
  return { area, label };
}

test("an opened row of samples shows their frames, pale between samples, and a block leads to its first sample", async () => {
  const { page, close } = await viewer.show("timeline?view=0-200000000");
  const { area, label } = await opened(page);
  const top = async () => {
    const box = await label.boundingBox();
    if (!box) throw new Error("the row is not on the screen");
    return box.y;
  };
  const x = (time_ns: number) => area.x + area.width * (time_ns / 200e6);
  const tip = page.locator(".timeline-tip");
  for (const depth of [0, 1, 2]) {
    for (const { start_ns, dur_ns, name } of blocksOf(depth)) {
      // Rows of 18 pixels each: that of the samples, and one for each depth.
      const y = (await top()) + 18 * (depth + 1.5);
      const place = x(start_ns + dur_ns / 2);
      await page.mouse.move(place, y + 40 * 18);
      await page.mouse.move(place, y);
      await tip.getByText(name, { exact: true }).waitFor();
      const [from, to] = [start_ns, start_ns + dur_ns].map((ns) => formatNs(ns));
      const when = dur_ns === 0 ? `in one sample, at ${from}` : `in the samples from ${from} to ${to}`;
      expect(await tip.textContent(), `${name} at depth ${depth}`).toContain(when);
    }
  }
  // The third sample has the frames of the second: a click on their block selects that one.
  const [inner] = blocksOf(2);
  if (!inner) throw new Error("there is a third frame");
  await page.mouse.click(x(inner.start_ns + inner.dur_ns / 2), (await top()) + 18 * 3.5);
  await title(page).filter({ hasText: "other.py(3): helper" }).waitFor();
  expect(page.url()).toContain(`at=${inner.start_ns}`);
  // Samples are seen without their frames: a link to one opens nothing.
  await label.getByRole("button").first().click();
  const shut = await label.getByRole("button").first().getAttribute("aria-expanded");
  const other = await open(viewer.browser, at(viewer.server.url, new URL(page.url()).hash.slice(1)));
  await title(other.page).filter({ hasText: "other.py(3): helper" }).waitFor();
  const same = other.page.locator(".timeline-label", { hasText: "main · samples" }).first();
  expect([shut, await same.getByRole("button").first().getAttribute("aria-expanded")]).toEqual(["false", "false"]);
  await other.close();
  expect(await violations(page)).toEqual([]);
  await close();
});
