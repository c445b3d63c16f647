// From what a worker reads for a sample to the step that used it, and back.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { NextHit, Slice, SliceDetails, TimelineInfo } from "../../src/canvas/model";
import { LOADER } from "./inputs";
import { asked, selected, title } from "./timeline_page";
import { viewerOf } from "./viewer";
import { violations } from "./violations";

const viewer = viewerOf([LOADER]);

/** The last read of a sample's file, and the other ends of its arrows. */
async function readOfSample(): Promise<SliceDetails> {
  const { span } = (await (await asked(viewer.server, "api/runs/0/timeline")).json()) as TimelineInfo;
  for (let before = span.end_ns; ; ) {
    const query = `q=read&before_ns=${before}`;
    const { hit } = (await (await asked(viewer.server, `api/runs/0/search/next?${query}`)).json()) as NextHit;
    if (!hit) throw new Error("the run has no read for a batch");
    const details = (await (await asked(viewer.server, `api/runs/0/slices/${hit.id}`)).json()) as SliceDetails;
    const isOfSample = details.args.some(([, value]) => /sample_\d+\.bin$/.test(value));
    if (isOfSample && details.flows.some(({ kind }) => kind === "batch")) return details;
    before = hit.start_ns;
  }
}

const linked = (page: Page, heading: string) =>
  page.getByRole("heading", { name: new RegExp(`^${heading}`) }).locator("xpath=following-sibling::ul[1]");

test("a read of a sample leads to the wait of the step that used it, and that to the worker", async () => {
  const read = await readOfSample();
  const taken = read.flows.find(({ kind }) => kind === "batch")?.slice as Slice;
  expect(taken.start_ns + taken.dur_ns).toBeGreaterThan(read.slice.start_ns + read.slice.dur_ns);
  const name = encodeURIComponent(read.slice.name);
  const { page, close } = await viewer.show(`timeline?at=${read.slice.start_ns}&at-rank=0&at-name=${name}`);
  await selected(page, read.slice.name);
  await linked(page, "Batch taken by").getByRole("button").first().click();
  await selected(page, taken.name);
  expect(taken.name).toMatch(/__next__$/);
  const madeBy = linked(page, "Batch made by").getByRole("button").first();
  const worker = (await madeBy.textContent()) ?? "";
  expect(read.ancestors.map((slice) => slice.name)).toContain(worker);
  await madeBy.click();
  await selected(page, worker);
  expect(await title(page).textContent()).toBe(worker);
  expect(await violations(page)).toEqual([]);
  await close();
});
