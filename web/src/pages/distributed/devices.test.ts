import { expect, test } from "vitest";
import type { RunDetail } from "../../api/types";
import { devicesOf } from "./devices";

const detail = {
  ranks: [
    { rank: 0, host: "a", pid: 1, name: "train.py" },
    { rank: 1, host: null, pid: 2, name: "" },
  ],
  devices: [
    { rank: 0, ordinal: 0, name: "A100", memory_bytes: 40 },
    { rank: 0, ordinal: 1, name: null, memory_bytes: null },
  ],
} as unknown as RunDetail;
const used = [{ rank: 0, device: 1, utilization_ratio: 0.5 }];

test("every rank is there with its devices, or with none", () => {
  const rows = devicesOf(detail, used, undefined);
  expect(
    rows.map(({ rank, host, process, device, use }) => [rank, host, process, device, use?.utilization_ratio]),
  ).toEqual([
    [0, "a", "train.py", 0, undefined],
    [0, "a", "train.py", 1, 0.5],
    [1, null, null, null, undefined],
  ]);
});

test("the rank that was chosen is the only one", () => {
  expect(devicesOf(detail, used, "1").map((row) => row.rank)).toEqual([1]);
  expect(devicesOf(detail, used, "7")).toEqual([]);
});
