import { expect, test } from "vitest";
import { keyed, layoutOf, type Shown, withGroup } from "./layout";
import type { TimelineGroup, TimelineRow } from "./model";
import { keptOf } from "./track_filter";

let rows = 0;
const row = (name: string, kind: TimelineRow["kind"]): TimelineRow => {
  return { id: rows++, name, kind, depth: 0, slices: 1, unit: null, rank: 0, track: 0 };
};
const group = (name: string, kind: TimelineGroup["kind"], rest: Partial<TimelineGroup>): TimelineGroup => {
  return { name, rank: 0, kind, is_open: true, summary: null, groups: [], rows: [], ...rest };
};
const track = (name: string) => group(name, "track", { rows: [row(name, "slices")] });
const rank = (name: string, is_open: boolean) =>
  group(name, "rank", {
    is_open,
    groups: [
      group("GPU 0", "device", { groups: [track("Stream 7"), track("Stream 17")] }),
      group("CPU threads", "threads", { groups: [track("main"), track("autograd")] }),
      group("Counters", "counters", { rows: [row("memory", "counter"), row("power", "counter")] }),
    ],
  });
const GROUPS = keyed([rank("Rank 0", true), rank("Rank 1", false)]);

const shown = (text: string, rest: Partial<Shown> = {}): Shown => {
  return { open: new Set(), shut: new Set(), pins: new Set(), rank: null, kept: keptOf(GROUPS, text), ...rest };
};
const told = (shown: Shown) => layoutOf(GROUPS, shown).lines.map(({ label, indent }) => " ".repeat(indent) + label);

test("tracks stay whose name or group has every word, in groups that open for them", () => {
  expect(told(shown("stream 17"))).toEqual([
    "Rank 0",
    " GPU 0",
    "  Stream 17",
    // Closed without the filter.
    "Rank 1",
    " GPU 0",
    "  Stream 17",
  ]);
  expect(told(shown("0 cpu"))).toEqual(["Rank 0", " CPU threads", "  main", "  autograd"]);
  // A group that is meant itself is as it was.
  expect(told(shown("RANK 1"))).toEqual(["Rank 1"]);
  expect(told(shown("7"))).toEqual(["Rank 0", " GPU 0", "  Stream 7", "Rank 1", " GPU 0", "  Stream 7"]);
  expect(told(shown("nothing"))).toEqual([]);
});

test("counters are kept by their own name", () => {
  expect(told(shown("power   rank 0"))).toEqual(["Rank 0", " Counters", "  power"]);
});

test("it is counted how many stay of how many", () => {
  expect(keptOf(GROUPS, " ")).toBeNull();
  expect(keptOf(GROUPS, "stream")).toMatchObject({ tracks: 4, allTracks: 12 });
  expect(keptOf(GROUPS, "nothing")).toMatchObject({ tracks: 0, allTracks: 12 });
});

test("a group that opened for a track can be closed, and pinned tracks stay whatever is typed", () => {
  const [, second] = GROUPS;
  if (!second) throw new Error("two ranks");
  const before = shown("stream 17");
  expect(told(withGroup(before, second, false))).toEqual(["Rank 0", " GPU 0", "  Stream 17", "Rank 1"]);
  const pinned = shown("stream 17", { pins: new Set(["Rank%200/CPU%20threads/main"]) });
  expect(layoutOf(GROUPS, pinned).pinned.map(({ label }) => label)).toEqual(["main · Rank 0 · CPU threads"]);
  expect(told(pinned)).toEqual(told(before));
});
