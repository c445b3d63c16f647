import { expect, test } from "vitest";
import { encodeTiles } from "../../tests/encode_tiles";
import { decodeTiles, FLAG_SEVERAL, firstEndingAfter, hashOf } from "./tile";

const BLOCKS = [
  [
    { start_ns: 0, dur_ns: 10, name: "aten::mm", class: 5, slice: 7 },
    { start_ns: 10, dur_ns: 5, busy_ns: 3, name: "ü 日本", class: 1, count: 4, flags: FLAG_SEVERAL },
  ],
  [],
  [{ start_ns: 2 ** 52 + 1, dur_ns: 0, name: "aten::mm", slice: 0xffffffff }],
];

test("what is written is what is read, without a copy", () => {
  const buffer = encodeTiles(BLOCKS);
  const tiles = decodeTiles(buffer);
  expect(tiles.map((tile) => tile.length)).toEqual([2, 0, 1]);
  const [first, , last] = tiles;
  expect([...(first?.busy_ns ?? [])]).toEqual([10, 3]);
  expect([...(first?.class ?? [])]).toEqual([5, 1]);
  expect([...(first?.count ?? [])]).toEqual([1, 4]);
  expect([...(first?.name ?? [])].map((name) => first?.names.text(name))).toEqual(["aten::mm", "ü 日本"]);
  expect(last?.start_ns[0]).toBe(2 ** 52 + 1);
  expect(last?.slice[0]).toBe(0xffffffff);
  expect(last?.start_ns.buffer).toBe(buffer);
});

test("a name has one hash in every answer", () => {
  const [a] = decodeTiles(encodeTiles([[{ start_ns: 0, dur_ns: 1, name: "x" }]]));
  const [b] = decodeTiles(encodeTiles([["y", "x"].map((name) => ({ start_ns: 0, dur_ns: 1, name }))]));
  expect(a?.names.hash(0)).toBe(b?.names.hash(1));
  expect(a?.names.hash(0)).not.toBe(b?.names.hash(0));
  expect(hashOf(new TextEncoder().encode("foobar"))).toBe(0xbf9cf968);
});

test("a name that is not there is an empty text", () => {
  const [tile] = decodeTiles(encodeTiles([[{ start_ns: 0, dur_ns: 1, name: "x" }]]));
  expect(tile?.names.text(5)).toBe("");
});

test("an answer that is cut anywhere is an error", () => {
  const buffer = encodeTiles(BLOCKS);
  for (let length = 0; length < buffer.byteLength; length++) {
    expect(() => decodeTiles(buffer.slice(0, length)), `${length} bytes`).toThrow(/^tiles: /);
  }
});

test("other bytes are an error that says what is wrong", () => {
  expect(() => decodeTiles(new TextEncoder().encode("<!doctype html>  ").buffer)).toThrow("does not begin as tiles do");
  const odd = encodeTiles([[{ start_ns: 0, dur_ns: 1, name: "x", class: 99 }]]);
  expect(() => decodeTiles(odd)).toThrow("there is no class 99");
});

test("what ends after a time is found as a walk finds it", () => {
  const [tile] = decodeTiles(encodeTiles([[0, 5, 9, 20].map((start_ns) => ({ start_ns, dur_ns: 3, name: "" }))]));
  if (!tile) throw new Error("no tile");
  for (let time = -1; time < 25; time++) {
    const expected = [3, 8, 12, 23].findIndex((end) => end > time);
    expect(firstEndingAfter(tile, time)).toBe(expected < 0 ? 4 : expected);
  }
});
