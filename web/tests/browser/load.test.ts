// Twenty people at once: nobody is turned away, and the server's memory does not grow with what they ask.

import { expect, test } from "vitest";
import { load } from "../../bench/load.mjs";
import { TRACE } from "./inputs";
import { view } from "./stepscope";

const TEXTS = ["gemm", "aten::", "cudaLaunch", "no such name", "e"];
/** What answers that are on their way, and threads, may take beside the run. */
const ROOM_BYTES = 128 << 20;

test("twenty people pan, zoom, search and sum up", async () => {
  const server = await view([TRACE]);
  try {
    // The first load has the server make what it makes once.
    await load(server, { people: 20, seconds: 2, texts: TEXTS });
    const { requests, failures, before, after } = await load(server, { people: 20, seconds: 6, texts: TEXTS });
    expect(failures).toEqual([]);
    expect(requests).toBeGreaterThan(100);
    if (before === null || after === null) throw new Error("this system does not say how much memory a process has");
    expect(after.peak - before.resident).toBeLessThan(ROOM_BYTES);
  } finally {
    await server.stop();
  }
});
