import { expect, test } from "vitest";
import { allGroups, keyed } from "./layout";
import type { TimelineGroup } from "./model";
import { keysOfRows, rowsOfKeys } from "./row_keys";

const group = (
  kind: TimelineGroup["kind"],
  name: string,
  ids: readonly number[],
  groups: readonly TimelineGroup[] = [],
  summary: number | null = null,
): TimelineGroup => ({
  name,
  rank: 0,
  kind,
  is_open: true,
  summary,
  groups,
  rows: ids.map((id, depth) => ({ id, name: "", kind: "slices", depth, slices: 1, unit: null, rank: 0, track: 1 })),
});

/** A run in which rows have numbers from `first` on. */
const run = (first: number) =>
  allGroups(
    keyed([
      group(
        "rank",
        "Rank 0",
        [],
        [
          group("device", "GPU 0", [first], [group("track", "Stream 7", [first + 1])], first),
          group("track", "main thread", [first + 2, first + 3, first + 4, first + 5], [], first + 6),
          group("track", "main thread", [first + 7]),
        ],
      ),
    ]),
  );

test("rows are found by their keys, also where another reading has other numbers", () => {
  const cases = [
    [[10], ["Rank%200/GPU%200"]],
    [[11], ["Rank%200/GPU%200/Stream%207"]],
    [[12, 13, 14, 15], ["Rank%200/main%20thread"]],
    [
      [12, 13, 15],
      ["Rank%200/main%20thread 0-1", "Rank%200/main%20thread 3"],
    ],
    [[16], ["Rank%200/main%20thread closed"]],
    [[17], ["Rank%200/main%20thread#2"]],
    [[], []],
  ] as const;
  for (const [rows, keys] of cases) {
    expect(keysOfRows(run(10), rows)).toEqual(keys);
    expect(rowsOfKeys(run(110), keys)).toEqual(rows.map((row) => row + 100));
  }
});

test("keys of what is not there are of no row", () => {
  const odd = ["", " ", "Rank%200/Stream 1", "Rank%200/main%20thread 9", "Rank%200/main%20thread 1-0"];
  expect(rowsOfKeys(run(10), [...odd, "Rank%200/main%20thread#2 closed", "Rank%200/main%20thread x"])).toEqual([]);
  expect(keysOfRows(run(10), [99, -1])).toEqual([]);
});
