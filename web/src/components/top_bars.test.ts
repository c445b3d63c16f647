import { expect, test } from "vitest";
import { barNames } from "./TopBars";

test("bars of several ranks say which rank each is of, and what has no name says what it is", () => {
  const rows = [
    { rank: 0, name: "aten::mm" },
    { rank: 1, name: "aten::mm" },
    { rank: 1, name: null },
  ];
  expect(barNames(rows, "name", "nothing was recorded")).toEqual([
    "aten::mm · rank 0",
    "aten::mm · rank 1",
    "nothing was recorded · rank 1",
  ]);
  expect(barNames(rows.slice(1), "name", "–")).toEqual(["aten::mm", "–"]);
  expect(barNames([{ name: "a" }, { name: "b" }], "name", "–")).toEqual(["a", "b"]);
});
