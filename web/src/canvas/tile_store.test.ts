import { expect, test } from "vitest";
import { encodeTiles } from "../../tests/encode_tiles";
import { decodeTiles, type Tile } from "./tile";
import { TileStore } from "./tile_store";

const TILE = decodeTiles(encodeTiles([[]]))[0] as Tile;
const keys = (...names: string[]) => names.map((name) => [name, TILE] as const);

test("what was used least lately goes first", () => {
  const store = new TileStore(300);
  for (const name of ["a", "b", "c"]) store.put(keys(name), 100);
  store.get("a");
  store.put(keys("d"), 100);
  expect(["a", "b", "c", "d"].filter((name) => store.has(name))).toEqual(["a", "c", "d"]);
  expect(store.bytes).toBe(300);
});

test("an answer is counted until the last of its tiles is gone", () => {
  const store = new TileStore(250);
  store.put(keys("a", "b"), 100);
  store.put(keys("c"), 100);
  store.get("b");
  // Without "a" its answer is still held by "b", so "c" goes too.
  store.put(keys("d"), 100);
  expect(store.has("a")).toBe(false);
  expect(store.has("c")).toBe(false);
  expect(store.has("b")).toBe(true);
  expect(store.bytes).toBe(200);
});

test("the latest answer stays, however large", () => {
  const store = new TileStore(10);
  store.put(keys("a"), 5);
  store.put(keys("b", "c"), 1000);
  expect(store.size).toBe(2);
  expect(store.bytes).toBe(1000);
  store.put(keys("d"), 5);
  expect(store.bytes).toBe(5);
});

test("bytes are those of what is kept, whatever is put", () => {
  const store = new TileStore(1000);
  for (let at = 0; at < 500; at++) {
    store.put(keys(`${at % 37}`, `${(at * 7) % 53}`, `${at}`), 50 + ((at * 31) % 200));
    store.get(`${(at * 3) % 41}`);
    expect(store.bytes).toBeLessThanOrEqual(1000);
  }
  store.put([], 500);
  expect(store.bytes).toBeLessThanOrEqual(1000);
  store.clear();
  expect([store.bytes, store.size]).toEqual([0, 0]);
});
