import { expect, test } from "vitest";
import { type Chosen, changesFor, queryOf, sideName, sidesOf } from "./sides";

const chosen = (run: number, rest: Partial<Chosen> = {}): Chosen => ({
  run,
  rank: undefined,
  b: undefined,
  bRank: undefined,
  ...rest,
});
const words = (sides: ReturnType<typeof sidesOf>) =>
  sides && [sides.a, sides.b].map(({ run, rank }) => (rank === null ? `${run}` : `${run}/${rank}`)).join(" ");

test("what nobody chose is the next run, or the one before", () => {
  expect(words(sidesOf(chosen(0), [0, 1, 2], [0]))).toBe("0 1");
  expect(words(sidesOf(chosen(2), [0, 1, 2], [0]))).toBe("2 1");
  expect(words(sidesOf(chosen(0, { b: 2, bRank: "3" }), [0, 1, 2], [0, 1]))).toBe("0 2/3");
  // One that is not there is not another.
  expect(words(sidesOf(chosen(0, { b: -1 }), [0, 1], [0]))).toBe("0 -1");
});

test("one run is compared by its ranks", () => {
  expect(words(sidesOf(chosen(0), [0], [0, 1]))).toBe("0/0 0/1");
  expect(words(sidesOf(chosen(0, { rank: "1" }), [0], [0, 1]))).toBe("0/1 0/0");
  expect(words(sidesOf(chosen(0, { bRank: "0" }), [0], [0, 1]))).toBe("0/1 0/0");
  expect(words(sidesOf(chosen(0, { b: 0, rank: "4", bRank: "4" }), [0, 1], [0, 4]))).toBe("0/4 0/4");
  expect(sidesOf(chosen(0), [0], [0])).toBeNull();
  expect(words(sidesOf(chosen(0, { b: 0 }), [0], [5]))).toBe("0/5 0");
});

test("sides come back from the address", () => {
  const sides = { a: { run: 3, rank: null }, b: { run: 1, rank: 2 } };
  const runs = [
    { id: 1, key: "one-00", name: "one" },
    { id: 3, key: "three-00", name: "three" },
  ];
  const changes = changesFor(sides, runs);
  expect(changes).toEqual({ run: "three-00", rank: null, b: "one-00", "b-rank": "2" });
  expect(sidesOf({ run: 3, rank: undefined, b: 1, bRank: changes["b-rank"] ?? "" }, [1, 3], [0])).toEqual(sides);
  expect(queryOf(sides)).toEqual([
    ["a", 3],
    ["b", 1],
    ["a_rank", null],
    ["b_rank", 2],
  ]);
});

test("a side is called by its run and its rank", () => {
  const runs = [{ id: 0, key: "before-00", name: "before" }];
  expect([sideName({ run: 0, rank: null }, runs), sideName({ run: 0, rank: 1 }, runs)]).toEqual([
    "before",
    "before, rank 1",
  ]);
  expect(sideName({ run: 4, rank: null }, runs)).toBe("run 4");
});
