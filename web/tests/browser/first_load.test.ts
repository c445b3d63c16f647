// What a browser that knows nothing yet has to load before it shows a page.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { TRACE } from "./inputs";
import { view } from "./stepscope";
import { viewerOf } from "./viewer";

/** Bytes of documents, scripts and styles as they are sent. */
const MOST = 120_000;

const viewer = viewerOf(() => view([TRACE]));

interface Loaded {
  readonly file: string;
  readonly sent: number;
  readonly unpacked: number;
}

/** Everything that was loaded, apart from what the server says of runs. */
const loaded = (page: Page): Promise<Loaded[]> =>
  page.evaluate(() => {
    const entries = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    return (entries as PerformanceResourceTiming[])
      .filter(({ name }) => !new URL(name).pathname.startsWith("/api/"))
      .map(({ name, encodedBodySize, decodedBodySize }) => ({
        file: new URL(name).pathname.replace(/^.*\/|-[\w-]{8}(?=\.\w+$)/g, ""),
        sent: encodedBodySize,
        unpacked: decodedBodySize,
      }));
  });

const sum = (all: readonly Loaded[]) => all.reduce((bytes, { sent }) => bytes + sent, 0);

/** What is opened first, and the page with the most of its own. */
for (const [place, own] of [
  ["", "Overview.js"],
  ["timeline", "Timeline.js"],
] as const) {
  test(`the first load of ${place || "a run"} is small, and has no other page in it`, async () => {
    const { page, close } = await viewer.show(place);
    const all = await loaded(page);
    const files = all.map(({ file }) => file);
    // A size that the browser does not tell would make any load small.
    expect(all.filter(({ sent }) => sent <= 0)).toEqual([]);
    expect(files).toEqual(expect.arrayContaining(["", "index.js", "index.css", own]));
    for (const other of ["Overview.js", "Timeline.js", "Compare.js", "Query.js", "Distributed.js"]) {
      if (other !== own) expect(files).not.toContain(other);
    }
    expect(sum(all), JSON.stringify(all)).toBeLessThanOrEqual(MOST);
    // What is counted is what was sent: packed.
    expect(all.reduce((bytes, { unpacked }) => bytes + unpacked, 0)).toBeGreaterThan(2 * sum(all));
    await close();
  });
}
