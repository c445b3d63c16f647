// The events of a range as a table.

import { expect, test } from "vitest";
import type { Slice, SliceDetails, TimelineInfo } from "../../src/canvas/model";
import { RUN, TRACE } from "./inputs";
import { asked, canvas, rowsOf } from "./timeline_page";
import { viewerOf } from "./viewer";
import { violations } from "./violations";

const viewer = viewerOf([TRACE, RUN]);

test("all events of the run are in pages, and in order once all are there", async () => {
  const { groups, span } = (await (await asked(viewer.server, "api/runs/0/timeline")).json()) as TimelineInfo;
  const rows = rowsOf(groups).filter(({ kind }) => kind === "slices");
  const all = rows.reduce((sum, { slices }) => sum + slices, 0);
  const { page, close } = await viewer.show(`timeline?range=${span.start_ns}-${span.end_ns + 1}`);
  await page.getByRole("tab", { name: "Events" }).click();
  const caption = page.locator("#timeline-panel caption");
  const pages = page.locator("#timeline-panel tbody tr");
  await pages.first().waitFor();
  if (all > 10_000) {
    expect(await caption.textContent()).toContain("1 to 500 of the first 10,000 events");
    await page.getByRole("button", { name: "Load all, to order them" }).click();
  }
  await page.getByRole("combobox", { name: "Order" }).selectOption("longest first");
  await expect.poll(() => caption.textContent()).toContain(`1 to 500 of ${all.toLocaleString("en")} events`);
  const durations = () =>
    pages.evaluateAll((rows) =>
      rows.map((row) => Number.parseInt(row.querySelectorAll<HTMLElement>(".value")[1]?.title ?? "", 10)),
    );
  const first = await durations();
  await page.getByRole("button", { name: "Next" }).click();
  await expect.poll(() => caption.textContent()).toContain("501 to 1,000");
  const both = [...first, ...(await durations())];
  expect(both).toHaveLength(1000);
  expect([...both].sort((one, other) => other - one)).toEqual(both);
  const sums = (await (
    await asked(
      viewer.server,
      `api/runs/0/sums?start_ns=${span.start_ns}&end_ns=${span.end_ns + 1}&by=name&limit=10000&rows=${rows.map(({ id }) => id).join()}`,
    )
  ).json()) as { rows: { longest: number }[] };
  const longest = await Promise.all(
    sums.rows.slice(0, 50).map(async ({ longest }) => {
      const details = (await (await asked(viewer.server, `api/runs/0/slices/${longest}`)).json()) as SliceDetails;
      return details.slice.dur_ns;
    }),
  );
  expect(both[0]).toBe(Math.max(...longest));
  await close();
});

test("the events of a range are a table that follows it, and each leads to itself", async () => {
  const { groups } = (await (await asked(viewer.server, "api/runs/1/timeline")).json()) as TimelineInfo;
  const rows = rowsOf(groups).filter(({ kind }) => kind === "slices" || kind === "samples");
  const listed = async (start: number, end: number): Promise<Slice[]> => {
    const ids = rows.map(({ id }) => id).join();
    return (
      await asked(viewer.server, `api/runs/1/slices?rows=${ids}&start_ns=${start}&end_ns=${end}&limit=1000`)
    ).json();
  };
  const { page, close } = await viewer.show("timeline?run=1&range=1500000000-1504000000");
  await page.getByRole("tab", { name: "Events" }).click();
  const table = page.locator("#timeline-panel table");
  const shown = async () => {
    const all = await table
      .locator("tbody tr")
      .evaluateAll((rows) =>
        rows.map((row) => [
          row.querySelector("code")?.textContent,
          ...[...row.querySelectorAll<HTMLElement>(".value")].map(({ title }) => title),
        ]),
      );
    return all.map(([name, start, dur]) => `${name} ${start} ${dur}`);
  };
  const told = (slices: readonly Slice[]) => slices.map((each) => `${each.name} ${each.start_ns} ns ${each.dur_ns} ns`);
  const first = await listed(1_500_000_000, 1_504_000_000);
  expect(first.length).toBeGreaterThan(10);
  expect(first.length).toBeLessThan(1000);
  await expect.poll(shown).toEqual(told(first));
  await page.getByRole("combobox", { name: "Order" }).selectOption("longest first");
  const longest = [...first].sort((one, other) => other.dur_ns - one.dur_ns);
  await expect.poll(shown).toEqual(told(longest));
  expect(await violations(page)).toEqual([]);
  const second = await listed(1_600_000_000, 1_600_900_000);
  expect(told(second)).not.toEqual(told(first));
  await page.evaluate(() => {
    location.hash = location.hash.replace(/range=[\d-]+/, "range=1600000000-1600900000").replace(/&events=[^&]*/, "");
  });
  await expect.poll(shown).toEqual(told(second));
  const row = table.locator("tbody tr").nth(1);
  await row.getByRole("button").click();
  await page.waitForURL((url) => url.hash.includes(`at=${second[1]?.start_ns}`));
  await table.locator("tr[aria-current]").waitFor();
  expect(await row.getAttribute("aria-current")).toBe("true");
  // Of another range that is dragged it shows the events, too, not the sums.
  const box = await canvas(page).boundingBox();
  if (!box) throw new Error("there is no canvas");
  await page.mouse.move(box.x + 300, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + 340, box.y + 10, { steps: 3 });
  await page.mouse.up();
  await page.waitForURL((url) => !url.hash.includes("range=1600000000"));
  expect(await page.getByRole("tab", { name: "Events" }).getAttribute("aria-selected")).toBe("true");
  await close();
});
