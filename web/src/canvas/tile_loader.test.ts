import { expect, test } from "vitest";
import { encodeTiles } from "../../tests/encode_tiles";
import { keysOf, prefetchFor, requestsFor, TILES_PER_REQUEST, TileLoader, type TileRequest } from "./tile_loader";
import { TileStore, tileKey } from "./tile_store";

const ROWS = Array.from({ length: 100 }, (_, row) => row);
const WANTED = { rows: ROWS, view: { start_ns: 0, end_ns: 512 * 7 }, level: 0, end_ns: 1e9 };

test("requests hold exactly what is missing, and none is too large", () => {
  for (let seed = 1; seed < 60; seed++) {
    const rows = ROWS.slice(0, (seed * 13) % 100);
    const start_ns = (seed * 512) / 3;
    const view = { start_ns, end_ns: start_ns + seed * 300 };
    const end_ns = seed % 3 === 0 ? start_ns + seed * 100 : 1e9;
    const isKnown = (key: string) => ((Number(key.split(":")[2]) * 31 + Number(key.split(":")[0])) ^ seed) % 3 === 0;
    const requests = requestsFor({ rows, view, level: 0, end_ns }, isKnown);
    const asked = requests.flatMap(keysOf);
    const expected: string[] = [];
    for (const row of rows) {
      for (let tile = 0; tile < 100; tile++) {
        const isSeen = tile * 512 < view.end_ns && (tile + 1) * 512 > view.start_ns && tile * 512 < end_ns;
        if (isSeen && !isKnown(tileKey(row, 0, tile))) expected.push(tileKey(row, 0, tile));
      }
    }
    expect([...asked].sort()).toEqual(expected.sort());
    for (const { rows, count } of requests) expect(rows.length * count).toBeLessThanOrEqual(TILES_PER_REQUEST);
  }
});

test("rows that miss the same are asked for together", () => {
  expect(requestsFor(WANTED, () => false).map(({ rows, count }) => [rows.length, count])).toEqual([
    [36, 7],
    [36, 7],
    [28, 7],
  ]);
});

test("what comes next is around what is shown", () => {
  const view = { start_ns: 1000, end_ns: 2000 };
  const next = prefetchFor({ ...WANTED, view, level: 4 }).map(({ level, view }) => [level, view.start_ns, view.end_ns]);
  expect(next).toEqual([
    [5, 0, 3000],
    [4, 0, 3000],
    [3, 1000, 2000],
  ]);
});

/** A server that answers when the test says so. */
function harness(bytesMax = 1e9) {
  const asked: { request: TileRequest; signal: AbortSignal; answer: () => void; fail: () => void }[] = [];
  const store = new TileStore(bytesMax);
  const errors: unknown[] = [];
  let arrivals = 0;
  let now = 0;
  const loader = new TileLoader(
    store,
    (request, signal) =>
      new Promise((resolve, reject) => {
        const blocks = keysOf(request).map(() => []);
        signal.addEventListener("abort", () => reject(new Error("aborted")));
        asked.push({
          request,
          signal,
          answer: () => resolve(encodeTiles(blocks)),
          fail: () => reject(new Error("broken")),
        });
      }),
    () => arrivals++,
    (error) => errors.push(error),
    () => now,
  );
  const settle = () => new Promise((resolve) => setTimeout(resolve, 0));
  const wait = (ms: number) => {
    now += ms;
  };
  return { asked, store, loader, errors, settle, wait, arrivals: () => arrivals };
}

test("what is shown comes first, then what is around, and then it is quiet", async () => {
  const { asked, loader, settle, store } = harness();
  const wanted = { ...WANTED, rows: [1, 2], level: 2, view: { start_ns: 4096, end_ns: 8192 } };
  loader.want(wanted);
  expect(asked).toHaveLength(1);
  expect(loader.isLoading).toBe(true);
  for (let at = 0; at < asked.length; at++) {
    asked[at]?.answer();
    await settle();
  }
  expect(loader.isLoading).toBe(false);
  expect(asked[0]?.request.level).toBe(2);
  for (const next of prefetchFor(wanted)) expect(requestsFor(next, (key) => store.has(key))).toEqual([]);
  expect(loader.inFlight).toBe(0);
  const before = asked.length;
  loader.want(wanted);
  expect(asked).toHaveLength(before);
});

test("what is no longer wanted is given up, without a complaint", async () => {
  const { asked, loader, settle, errors } = harness();
  loader.want({ ...WANTED, rows: [1] });
  loader.want({ ...WANTED, rows: [1], view: { start_ns: 5e8, end_ns: 5e8 + 700 } });
  expect(asked[0]?.signal.aborted).toBe(true);
  await settle();
  expect(errors).toEqual([]);
  expect(asked[1]?.signal.aborted).toBe(false);
});

test("no more than four requests are on their way", async () => {
  const { asked, loader, settle } = harness();
  loader.want({ ...WANTED, rows: Array.from({ length: 500 }, (_, row) => row) });
  expect(asked).toHaveLength(4);
  asked[0]?.answer();
  await settle();
  expect(asked).toHaveLength(5);
});

test("a failure is told, and the same is asked again after a pause", async () => {
  const { asked, loader, settle, errors, wait } = harness();
  const wanted = { ...WANTED, rows: [1], view: { start_ns: 0, end_ns: 100 }, end_ns: 100 };
  loader.want(wanted);
  asked[0]?.fail();
  await settle();
  expect(errors).toHaveLength(1);
  const visible = () => asked.filter(({ request }) => request.level === 0).length;
  loader.want(wanted);
  expect(visible()).toBe(1);
  wait(5000);
  loader.want(wanted);
  asked.at(-1)?.answer();
  await settle();
  expect(visible()).toBe(2);
});

test("an answer with another number of blocks is an error", async () => {
  const store = new TileStore(1e9);
  const errors: string[] = [];
  const loader = new TileLoader(
    store,
    async () => encodeTiles([[], []]),
    () => {},
    (error) => errors.push(String(error)),
  );
  loader.want({ ...WANTED, rows: [1], view: { start_ns: 0, end_ns: 100 } });
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(errors[0]).toContain("2 blocks came for 1");
  expect(store.size).toBe(0);
  loader.dispose();
});
