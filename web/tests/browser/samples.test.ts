// Samples of stacks: moments on a row of their thread, with their stack, and counted by line; never a duration.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { SliceDetails, TimelineInfo } from "../../src/canvas/model";
import { at, goTo, open, settled } from "./browser";
import { analyze, view } from "./stepscope";
import { shownColumns } from "./table";
import { asked, canvas, rowsOf, title } from "./timeline_page";
import { viewerOf } from "./viewer";
import { violations } from "./violations";

const CODE = "import time\n\ndef work():\n    time.sleep(1)\n\nwork()\n";
const FRAMES = {
  1: { name: "job.py(6): <module>" },
  2: { name: "job.py(4): work", parent: 1 },
  3: { name: "other.py(3): helper", parent: 1 },
};
/** Which frame the thread is in, every 20 ms. */
const SAMPLED = [2, 2, 3, 2, 2, 2, 1, 2, 2, 3] as const;

let [folder, trace] = ["", ""];
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const viewer = viewerOf(async () => {
  folder = mkdtempSync(join(tmpdir(), "stepscope-samples-"));
  trace = join(folder, "trace.json");
  const place = { pid: 1, tid: 1 };
  const traceEvents = [
    { ph: "M", name: "thread_name", ...place, args: { name: "main" } },
    { ph: "X", cat: "user_annotation", name: "ProfilerStep#0", ...place, ts: 0, dur: 100_000 },
    { ph: "X", cat: "user_annotation", name: "ProfilerStep#1", ...place, ts: 100_000, dur: 100_000 },
    { ph: "X", cat: "cpu_op", name: "aten::mm", ...place, ts: 55_000, dur: 10_000 },
    ...SAMPLED.map((sf, nth) => {
      return { ph: "P", name: "sample", ...place, ts: 10_000 + nth * 20_000, sf, args: { Stepscope: "sleep" } };
    }),
  ];
  writeFileSync(trace, JSON.stringify({ schemaVersion: 1, traceEvents, stackFrames: FRAMES }));
  writeFileSync(join(folder, "job.py"), CODE);
  return view([trace], ["--source", folder]);
});

/** The numbers of samples by line, and of those of which it is the innermost. */
function counted(frame: number): [samples: number, innermost: number] {
  const callers = { 1: [1, 2, 3], 2: [2], 3: [3] }[frame] ?? [];
  const among = (frames: readonly number[]) => SAMPLED.filter((sampled) => frames.includes(sampled)).length;
  return [among(callers), among([frame])];
}

test("a thread has a row of its samples, each a moment with its stack", async () => {
  const { groups } = (await (await asked(viewer.server, "api/runs/0/timeline")).json()) as TimelineInfo;
  const [row, ...more] = rowsOf(groups).filter(({ kind }) => kind === "samples");
  expect([row?.name, row?.slices, more.length]).toEqual(["main · samples", SAMPLED.length, 0]);
  const found = (await (await asked(viewer.server, `api/runs/0/slices?row=${row?.id}&at_ns=50000000`)).json()) as {
    id: number;
  };
  const details = (await (await asked(viewer.server, `api/runs/0/slices/${found.id}`)).json()) as SliceDetails;
  expect(details.slice).toMatchObject({ kind: "sample", dur_ns: 0, name: "other.py(3): helper" });
  expect(details.stack.map(({ file, line }) => [file, line])).toEqual([
    ["other.py", 3],
    ["job.py", 6],
  ]);
});

test("pointing at a sample shows its stack, and a click leads to the lines", async () => {
  const { page, close } = await viewer.show("timeline?view=0-200000000");
  const label = page.getByText("main · samples", { exact: true }).first();
  const [area, line] = [await canvas(page).boundingBox(), await label.boundingBox()];
  if (!area || !line) throw new Error("the row is not on the screen");
  // The first sample is at 10 of 200 ms.
  const point = { x: area.x + area.width * (10 / 200), y: line.y + line.height / 2 };
  await page.mouse.move(point.x - 40, point.y);
  await page.mouse.move(point.x, point.y);
  const tip = page.locator(".timeline-tip");
  await tip.getByText("job.py(6): <module>").waitFor();
  expect(await tip.locator("strong").textContent()).toBe("sample");
  expect(await tip.locator("li").allTextContents()).toEqual(["job.py(4): work", "job.py(6): <module>"]);
  expect(await tip.textContent()).not.toContain("0 ns");
  await page.mouse.click(point.x, point.y);
  await title(page).filter({ hasText: "job.py(4): work" }).waitFor();
  const facts = await page.locator(".timeline-facts dt").allTextContents();
  expect(facts).toContain("what the thread does");
  expect(facts).not.toContain("duration");
  expect(await violations(page)).toEqual([]);
  // The link names it, and the stack leads to the line.
  const other = await open(viewer.browser, at(viewer.server.url, new URL(page.url()).hash.slice(1)));
  await title(other.page).filter({ hasText: "job.py(4): work" }).waitFor();
  await other.close();
  await page.getByRole("link", { name: "job.py(4): work" }).click();
  await settled(page);
  expect(page.url()).toMatch(/#source\?.*file=job\.py.*line=4/);
  await close();
});

test("the keyboard goes from sample to sample, and the list has them without a duration", async () => {
  const name = encodeURIComponent("job.py(4): work");
  const place = `timeline?view=0-200000000&at=10000000&at-rank=0&at-name=${name}`;
  const { page, close } = await viewer.show(place);
  await title(page).filter({ hasText: "job.py(4): work" }).waitFor();
  await canvas(page).focus();
  await page.keyboard.press(".");
  await page.waitForURL(/at=30000000/);
  await page.keyboard.press(".");
  await title(page).filter({ hasText: "other.py(3): helper" }).waitFor();
  await settled(page);
  // All of them are seen already: nothing moves.
  expect(page.url()).toMatch(/view=0-200000000/);
  await page.getByRole("tab", { name: "List" }).click();
  const rows = page.locator(".timeline-rows tbody tr").filter({ hasText: "sample" });
  await expect.poll(() => rows.count(), { timeout: 10_000 }).toBe(SAMPLED.length);
  const durations = await rows.evaluateAll((all) => all.map((row) => row.querySelectorAll("td")[1]?.textContent));
  expect(new Set(durations)).toEqual(new Set(["–"]));
  await close();
});

test("lines are counted by samples, beside their code", async () => {
  const known = analyze("source_lines", trace).results.filter(({ file }) => file !== null);
  const byPlace = new Map(known.map((row) => [`${row.file}(${row.line}): ${row.function}`, row]));
  for (const [frame, { name }] of Object.entries(FRAMES)) {
    const row = byPlace.get(name);
    expect([row?.samples, row?.self_samples], name).toEqual(counted(Number(frame)));
    expect(row?.host_total_ns, name).toBe(0);
  }
  const { page, close } = await viewer.show("source?file=job.py");
  expect(await page.getByRole("combobox", { name: "Sort by" }).locator("option").allTextContents()).toEqual([
    "samples of stacks that have them",
    "samples of stacks of which they are the innermost line",
  ]);
  const gutter = (line: number) => page.locator(`tr[data-line="${line}"] .gutter .value`).getAttribute("title");
  expect([await gutter(4), await gutter(6)]).toEqual([`${counted(2)[0]}`, `${counted(1)[0]}`]);
  await goTo(page, "source?file=job.py&by=self_samples");
  expect(await gutter(6)).toBe(`${counted(1)[1]}`);
  expect(await violations(page)).toEqual([]);
  await close();
});

test("where calls of modules were recorded, too, lines have no times of 0", async () => {
  const context = await viewer.browser.newContext();
  const page = await context.newPage();
  await page.route(/\/api\/runs\/0(\?|$)/, async (route) => {
    const told = await (await route.fetch()).json();
    told.has.python = true;
    await route.fulfill({ json: told });
  });
  await page.goto(at(viewer.server.url, "source"));
  await settled(page);
  expect(await page.getByRole("combobox", { name: "Sort by" }).locator("option").count()).toBe(2);
  expect(await shownColumns(page, "All lines")).toEqual(["file", "line", "function", "samples", "self_samples"]);
  await context.close();
});
