import { expect, test } from "vitest";
import {
  allGroups,
  groupsAround,
  keyed,
  type Layout,
  layoutOf,
  lineAt,
  linesBetween,
  type Shown,
  withGroup,
} from "./layout";
import type { TimelineGroup, TimelineRow } from "./model";

const row = (id: number, name: string, depth = 0, kind: TimelineRow["kind"] = "slices"): TimelineRow => ({
  id,
  name,
  kind,
  depth,
  slices: 1,
  unit: null,
  rank: 0,
  track: 0,
});
const group = (
  name: string,
  kind: TimelineGroup["kind"],
  rows: TimelineRow[],
  groups: TimelineGroup[] = [],
  is_open = true,
): TimelineGroup => ({ name, rank: 0, kind, is_open, summary: 90 + rows.length, groups, rows });

const GROUPS = keyed([
  group(
    "Rank 0",
    "rank",
    [],
    [
      group("GPU 0", "device", [], [group("Stream 7", "track", [row(1, "Stream 7")])]),
      group(
        "CPU threads",
        "threads",
        [],
        [
          group("main", "track", [row(2, "main"), row(3, "main", 1)]),
          group("main", "track", [row(4, "main"), row(5, "main", 1)], [], false),
        ],
      ),
      group("Counters", "counters", [row(6, "memory", 0, "counter")]),
    ],
  ),
]);
const SHOWN: Shown = { open: new Set(), shut: new Set(), pins: new Set(), rank: null, kept: null };

const told = ({ lines }: Layout) =>
  lines.map((line) => `${" ".repeat(line.indent)}${line.label || "…"}${line.row === null ? "" : ` ${line.row}`}`);

test("lines are groups and their rows, a closed group is its summary", () => {
  expect(told(layoutOf(GROUPS, SHOWN))).toEqual([
    "Rank 0",
    " GPU 0",
    "  Stream 7 1",
    " CPU threads",
    "  main 2",
    "  … 3",
    "  main 92",
    " Counters",
    "  memory 6",
  ]);
});

test("closing a group hides what is in it, and opening it again leaves nothing behind", () => {
  const [rank] = GROUPS;
  if (!rank) throw new Error("no rank");
  const shut = withGroup(SHOWN, rank, false);
  expect(told(layoutOf(GROUPS, shut))).toEqual(["Rank 0 90"]);
  expect(withGroup(shut, rank, true)).toEqual(SHOWN);
});

test("the unit behind a counter's name is its unit", () => {
  const names = ["power (mW)", "clock event reasons (bits)", "seen (by all)", "memory"];
  const counters = names.map((name, nth) => row(nth, name, 0, "counter"));
  const { lines } = layoutOf(keyed([group("Counters", "counters", counters)]), SHOWN);
  expect(lines.slice(1).map(({ label, unit }) => [label, unit])).toEqual([
    ["power", "mW"],
    ["clock event reasons (bits)", null],
    ["seen (by all)", null],
    ["memory", null],
  ]);
});

test("two tracks of one name have keys of their own", () => {
  const keys = allGroups(GROUPS).map(({ key }) => key);
  expect(new Set(keys).size).toBe(keys.length);
  expect(keys).toContain("Rank%200/CPU%20threads/main#2");
});

test("a pinned track stands above, also while its group is closed", () => {
  const pins = new Set(["Rank%200/CPU%20threads/main", "Rank%200/Counters/memory"]);
  const layout = layoutOf(GROUPS, { ...SHOWN, pins, shut: new Set(["Rank%200"]) });
  expect(told({ ...layout, lines: layout.pinned })).toEqual([
    "main · Rank 0 · CPU threads 2",
    "… 3",
    "memory · Counters · Rank 0 6",
  ]);
  expect(layout.pinnedHeight).toBe(18 + 18 + 44);
  expect(layout.lines).toHaveLength(1);
  const keys = [...layoutOf(GROUPS, { ...SHOWN, pins }).pinned, ...layoutOf(GROUPS, { ...SHOWN, pins }).lines];
  expect(new Set(keys.map(({ key }) => key)).size).toBe(keys.length);
});

test("only one rank is shown when one is chosen", () => {
  expect(layoutOf(GROUPS, { ...SHOWN, rank: 1 }).lines).toEqual([]);
  expect(layoutOf(GROUPS, { ...SHOWN, rank: 0 }).lines).toHaveLength(9);
});

test("lines are found by height as a walk finds them", () => {
  const { lines, height } = layoutOf(GROUPS, SHOWN);
  for (let y = -5; y < height + 5; y++) {
    expect(lineAt(lines, y)).toBe(lines.find((line) => y >= line.y && y < line.y + line.height));
    const expected = lines.filter((line) => line.y < y + 30 && line.y + line.height > y);
    expect(linesBetween(lines, y, y + 30)).toEqual(expected);
  }
});

test("what must be open for a row is known", () => {
  expect(groupsAround(GROUPS, 5)?.map(({ group }) => group.name)).toEqual(["Rank 0", "CPU threads", "main"]);
  expect(groupsAround(GROUPS, 77)).toBe(null);
});

test("a rank among many is one row that shows its devices, and open when it is the only one that is shown", () => {
  const strip = row(7, "Devices", 0, "projected");
  const streams = [group("Stream 7", "track", [row(1, "Stream 7")])];
  const rank: TimelineGroup = { ...group("Rank 3", "rank", [strip], streams, false), rank: 3, summary: strip.id };
  const [keyedRank] = keyed([{ ...rank, groups: rank.groups.map((inner) => ({ ...inner, rank: 3 })) }]);
  if (!keyedRank) throw new Error("one group");
  const lines = (shown: Shown) => layoutOf([keyedRank], shown).lines.map((line) => [line.label, line.kind, line.row]);
  expect(lines(SHOWN)).toEqual([["Rank 3", "projected", 7]]);
  const open = [
    ["Rank 3", "density", null],
    ["Stream 7", "slices", 1],
  ];
  expect(lines(withGroup(SHOWN, keyedRank, true))).toEqual(open);
  const alone = { ...SHOWN, rank: 3 };
  expect(lines(alone)).toEqual(open);
  expect(lines(withGroup(alone, keyedRank, false))).toEqual([["Rank 3", "projected", 7]]);
  expect(lines(withGroup(withGroup(alone, keyedRank, false), keyedRank, true))).toEqual(open);
});

test("closed, sampled frames are the samples alone; open, each of their rows names the samples", () => {
  const frames = [row(5, "main", 0, "sampled_frames"), row(6, "main", 1, "sampled_frames")];
  const samples = { ...group("main · samples", "track", [row(4, "main", 0, "samples"), ...frames]), summary: 4 };
  const [closed] = keyed([{ ...samples, is_open: false }]);
  if (!closed) throw new Error("one group");
  const lines = (shown: Shown) =>
    layoutOf([closed], shown).lines.map((line) => [line.label, line.kind, line.row, line.isOpen, line.samples]);
  expect(lines(SHOWN)).toEqual([["main · samples", "samples", 4, false, undefined]]);
  expect(lines(withGroup(SHOWN, closed, true))).toEqual([
    ["main · samples", "samples", 4, true, undefined],
    ["", "sampled_frames", 5, null, 4],
    ["", "sampled_frames", 6, null, 4],
  ]);
});
