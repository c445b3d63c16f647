import { afterEach, expect, test, vi } from "vitest";
import type { Slice } from "../../canvas/model";
import { loadingWords, Requests } from "./requests";

const SLICE = { id: 7, row: 2, start_ns: 5 } as Slice;
const WINDOW = { start_ns: 0, end_ns: 9 };

afterEach(() => vi.unstubAllGlobals());

/** The addresses of every request of a timeline. */
async function addressesOf(requests: Requests): Promise<string[]> {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (address: string) => {
    asked.push(address);
    return new Response("null");
  });
  vi.stubGlobal("localStorage", { getItem: () => null });
  const { signal } = new AbortController();
  await requests.info(signal);
  await requests.canvas.fetchTiles({ rows: [1, 2], level: 3, first: 4, count: 5 }, signal);
  await requests.canvas.fetchCounters([1], WINDOW, 10, signal);
  await requests.details(7, signal);
  await requests.joined(7, signal);
  await requests.named({ rank: 3, start_ns: 5, name: "mm" }, signal);
  await requests.beside(SLICE, "after", signal);
  await requests.list([1], WINDOW, 10, signal);
  await requests.sums(WINDOW, "name", "1", signal);
  await requests.search("mm", signal);
  await requests.nextHit("mm", true, SLICE, signal);
  return [...asked, requests.sourceTextPath(7), requests.exportPath("chrome", WINDOW)];
}

const ofRank = (address: string) => new URL(address, "http://127.0.0.1/").searchParams.getAll("of_rank");

test("every request of the timeline of a rank names that rank", async () => {
  const asked = await addressesOf(new Requests(0, 1, 0));
  expect(asked.length).toBe(13);
  expect(asked.map(ofRank)).toEqual(asked.map(() => ["0"]));
});

test("where all events are shown no request names a rank", async () => {
  const asked = await addressesOf(new Requests(0, 1, null));
  expect(asked.length).toBe(13);
  expect(asked.map(ofRank)).toEqual(asked.map(() => []));
});

test("what is being read is said", () => {
  expect(loadingWords(new Requests(0, 1, 12))).toBe("Reading all events of rank 12…");
  expect(loadingWords(new Requests(0, 1, null))).toBe("Laying out the timeline…");
});
