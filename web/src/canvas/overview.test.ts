import { expect, test } from "vitest";
import { encodeTiles } from "../../tests/encode_tiles";
import type { KeyedGroup } from "./layout";
import { busyOf, overviewRequest } from "./overview";

test("all of the time is asked for in two tiles at most, of the averages of groups", () => {
  const group = (summary: number | null, groups: unknown[] = []) => ({ summary, groups, rows: [] });
  const groups = [
    {
      group: group(3),
      groups: [
        { group: group(null), groups: [] },
        { group: group(5), groups: [] },
      ],
    },
  ];
  const request = overviewRequest(groups as unknown as KeyedGroup[], 512 * 64 * 1.5);
  expect(request).toMatchObject({ level: 6, first: 0, count: 2 });
  expect(request?.rows).toContain(3);
  expect(overviewRequest([], 100)).toBeNull();
});

test("a part of the time is as busy as its busiest row", () => {
  const item = (start_ns: number, busy_ns: number) => ({ start_ns, dur_ns: 4, busy_ns, name: "", slice: 0xffffffff });
  const tiles = encodeTiles([[item(0, 1), item(8, 4)], [item(0, 3)]]);
  expect(busyOf(tiles, 2, 16)).toEqual([0.75, 0, 1, 0]);
});
