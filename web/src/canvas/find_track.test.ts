import { expect, test } from "vitest";
import { tracksMatching } from "./find_track";
import { allGroups, keyed } from "./layout";
import type { TimelineGroup } from "./model";

const group = (name: string, groups: TimelineGroup[] = []): TimelineGroup => ({
  name,
  rank: 0,
  kind: "track",
  is_open: true,
  summary: null,
  groups,
  rows: [],
});
const ALL = allGroups(
  keyed([
    group("Rank 0", [group("GPU 0", [group("Stream 7"), group("Stream 17")])]),
    group("Rank 7", [group("GPU 0", [group("Stream 9")])]),
  ]),
);
const found = (text: string) => tracksMatching(ALL, text).map(({ path }) => path);

test("a track is found by its own name first, then by where it is", () => {
  expect(found("7")).toEqual([
    "Rank 0 ▸ GPU 0 ▸ Stream 7",
    "Rank 0 ▸ GPU 0 ▸ Stream 17",
    "Rank 7",
    "Rank 7 ▸ GPU 0",
    "Rank 7 ▸ GPU 0 ▸ Stream 9",
  ]);
  expect(found("STREAM 9 rank")).toEqual(["Rank 7 ▸ GPU 0 ▸ Stream 9"]);
  expect(found("nothing")).toEqual([]);
});

test("without a text all are there, but not more than can be read", () => {
  expect(found(" ")).toHaveLength(7);
  const many = allGroups(keyed(Array.from({ length: 900 }, (_, at) => group(`Rank ${at}`))));
  expect(tracksMatching(many, "rank")).toHaveLength(50);
});
