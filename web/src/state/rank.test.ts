import { beforeEach, expect, test } from "vitest";
import type { RunDetail } from "../api/types";
import { isCondensed, rankChanges, rankNumber, rankShown, shownRank, showsCondensed } from "./rank";
import { setParams } from "./route";
import { detail } from "./runs";

const WHOLE = { shows_all: true } as RunDetail;
const PART = { shows_all: false } as RunDetail;

beforeEach(() => {
  Object.assign(globalThis, { history: { pushState: () => {}, replaceState: () => {} } });
  setParams({ rank: null, at: null, "at-rank": null, "at-name": null });
  detail.value = null;
});

test("a rank is a number, and several are none", () => {
  expect(["0", "17", "0-7", "", "-1", "x", undefined].map(rankNumber)).toEqual([0, 17, null, null, null, null, null]);
});

test("only where events do not fit into memory the timeline is of a rank, or of collectives", () => {
  expect([WHOLE, PART].map((run) => [rankShown(run, 3), rankShown(run, null)])).toEqual([
    [null, null],
    [3, null],
  ]);
  expect([WHOLE, PART].map((run) => [isCondensed(run, 3), isCondensed(run, null)])).toEqual([
    [false, false],
    [false, true],
  ]);
  expect([rankShown(null, 3), isCondensed(null, null)]).toEqual([null, false]);
});

test("the rank in the address is the one that is shown", () => {
  detail.value = PART;
  expect([shownRank.value, showsCondensed.value]).toEqual([null, true]);
  setParams({ rank: "0" });
  expect([shownRank.value, showsCondensed.value]).toEqual([0, false]);
  setParams({ rank: "0-7" });
  expect([shownRank.value, showsCondensed.value]).toEqual([null, true]);
  detail.value = WHOLE;
  setParams({ rank: "0" });
  expect([shownRank.value, showsCondensed.value]).toEqual([null, false]);
});

test("another rank leaves the slice that was selected, where timelines of ranks are apart", () => {
  setParams({ at: "5", "at-rank": "1", "at-name": "mm" });
  detail.value = WHOLE;
  expect(rankChanges("2")).toEqual({ rank: "2" });
  detail.value = PART;
  expect(rankChanges("1")).toEqual({ rank: "1" });
  const left = { at: null, "at-rank": null, "at-name": null };
  expect([rankChanges("2"), rankChanges(null)]).toEqual([
    { rank: "2", ...left },
    { rank: null, ...left },
  ]);
});
