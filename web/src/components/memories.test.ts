import { expect, test } from "vitest";
import { chosenMemory, conditionsOf, memoriesOf, memoryWords } from "./memories";

const ROWS = [
  { rank: 0, device: null, peak_ns: 5, peak_bytes: 9_000 },
  { rank: 0, device: 0, peak_ns: 6, peak_bytes: 100 },
  { rank: 1, device: 0, peak_ns: 7, peak_bytes: 2n ** 60n },
  { rank: 1, device: 1, peak_ns: 8, peak_bytes: 300 },
];

test("the fullest device is shown unasked, the host where there is none", () => {
  expect(chosenMemory(ROWS, undefined)?.id).toBe("1/0");
  expect(chosenMemory(ROWS, "0/host")?.id).toBe("0/host");
  expect(chosenMemory(ROWS, "7/7")?.id).toBe("1/0");
  expect(chosenMemory(ROWS.slice(0, 1), undefined)?.id).toBe("0/host");
  expect(chosenMemory([], undefined)).toBeUndefined();
});

test("a memory has its words and its conditions", () => {
  const [host, device] = memoriesOf(ROWS);
  if (!host || !device) throw new Error("there are four");
  expect([memoryWords(host, false), memoryWords(device, true)]).toEqual(["host", "rank 0, device 0"]);
  expect([conditionsOf(host), conditionsOf(device)]).toEqual([
    ["rank:eq:0", "device:eq:"],
    ["rank:eq:0", "device:eq:0"],
  ]);
});
