import { expect, test } from "vitest";
import { byGroup, SHOWN } from "./curve";

const row = (layer: string, start_ns: number, read: number | null, written: number) => ({
  layer,
  start_ns,
  span_ns: 10,
  read_bytes_per_s: read,
  write_bytes_per_s: written,
});

test("groups that lie one after another become columns of the same buckets", () => {
  const results = [
    row("posix", 0, 5, 0),
    row("posix", 10, null, 0),
    row("page_fault", 0, 0, 7),
    row("page_fault", 10, 1, 0),
  ];
  const { rows, lines } = byGroup(results, "layer", SHOWN.bandwidth);
  expect(rows.map((joined) => Object.values(joined))).toEqual([
    [0, 10, 5, 0, 0, 7],
    [10, 10, null, 0, 1, 0],
  ]);
  expect(lines.map(({ name, words, isDashed }) => [name, words, isDashed])).toEqual([
    ["posix read_bytes_per_s", "posix read", false],
    ["page_fault read_bytes_per_s", "page fault read", false],
    ["page_fault write_bytes_per_s", "page fault written", true],
  ]);
});
