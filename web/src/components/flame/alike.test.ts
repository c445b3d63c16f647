import { expect, test } from "vitest";
import type { Row } from "../../api/types";
import { type Alike, alikeName, mergedAlike } from "./alike";

const alike: Alike = {
  id: "path",
  sums: new Set(["count", "ns"]),
  kindOf: ({ module_class }) => String(module_class),
  isApart: () => false,
};
const row = (path: string, parent: string | null, module_class: string, ns: number | null): Row => ({
  path,
  parent,
  module_class,
  name: parent === null ? path : path.slice(parent.length + 1),
  count: 1,
  ns,
  ratio: ns,
});
const MODEL = [
  row("Model_0", null, "Model", 20),
  ...[0, 1, 2].flatMap((at) => [
    row(`Model_0.Layer_${at}`, "Model_0", "Layer", 6),
    row(`Model_0.Layer_${at}.Linear_${at}`, `Model_0.Layer_${at}`, "Linear", 5),
  ]),
  row("Model_0.Linear_3", "Model_0", "Linear", 2),
];
const lines = (rows: readonly Row[]) => rows.map(({ path, count, ns }) => `${path} x${count} ${ns}`);

test("layers that differ by their number are one, and so is what is in them", () => {
  const merged = mergedAlike(MODEL, alike);
  expect(lines(merged)).toEqual([
    "Model_0 x1 20",
    "Model_0.Layer_0–2 ×3 x3 18",
    "Model_0.Linear_3 x1 2",
    "Model_0.Layer_0–2 ×3.Linear_0–2 ×3 x3 15",
  ]);
  expect(merged.map(({ name, parent }) => [name, parent])).toEqual([
    ["Model_0", null],
    ["Layer_0–2 ×3", "Model_0"],
    ["Linear_3", "Model_0"],
    ["Linear_0–2 ×3", "Model_0.Layer_0–2 ×3"],
  ]);
  expect(lines(mergedAlike([...MODEL].reverse(), alike)).sort()).toEqual(lines(merged).sort());
});

test("one that stands for several is taken apart by its place, and what is in each stays with it", () => {
  const place = String(mergedAlike(MODEL, alike)[1]?.alike);
  const apart = mergedAlike(MODEL, { ...alike, isApart: (known) => known === place });
  expect(lines(apart).sort()).toEqual(lines(MODEL).sort());
  expect(apart.filter(({ alike }) => alike !== undefined)).toEqual([]);
});

test("modules of different classes are not alike, and what is known of some is added", () => {
  const rows = [
    row("m", null, "Model", 9),
    row("m.layers.0", "m", "Dense", 1),
    row("m.layers.1", "m", "Expert", 2),
    row("m.layers.2", "m", "Expert", null),
  ];
  const merged = mergedAlike(rows, alike);
  expect(lines(merged)).toEqual(["m x1 9", "m.layers.0 x1 1", "m.layers.1, 2 ×2 x2 2"]);
  // A share does not add up.
  expect(merged[2]?.ratio).toBe(null);
});

test("the numbers of alike ones are written as runs, of many the first and the last", () => {
  expect(alikeName(["Layer_2", "Layer_0", "Layer_1"])).toBe("Layer_0–2 ×3");
  expect(alikeName(["layers.0", "layers.1"])).toBe("layers.0, 1 ×2");
  expect(alikeName(["0", "10", "11", "12"])).toBe("0, 10–12 ×4");
  expect(alikeName([0, 2, 4, 6, 9].map((at) => `A_${at}`))).toBe("A_0–9 ×5");
});

test("rows that have numbers for names of rows stay below the one that their parents became", () => {
  const rows = [
    { id: 7, parent: null, depth: 0, name: "m_0", module_class: "m", ns: 9, ratio: 0.5 },
    { id: 8, parent: 7, depth: 1, name: "l_0", module_class: "l", ns: 2, ratio: 0.5 },
    { id: 9, parent: 7, depth: 1, name: "l_1", module_class: "l", ns: 3, ratio: 0.5 },
    { id: 5, parent: 8, depth: 2, name: "op", module_class: null, ns: 1, ratio: 0.5 },
    { id: 6, parent: 9, depth: 2, name: "op", module_class: null, ns: 2, ratio: 0.5 },
  ];
  const merged = mergedAlike(rows, { ...alike, id: "id", kindOf: ({ name }) => (name === "op" ? null : "m") });
  expect(merged.map(({ id, parent, name, ns, ratio }) => [id, parent, name, ns, ratio])).toEqual([
    [7, null, "m_0", 9, 0.5],
    [8, 7, "l_0, 1 ×2", 5, null],
    [5, 8, "op", 3, null],
  ]);
});

test("thousands of levels are no recursion", () => {
  const rows = Array.from({ length: 20_000 }, (_, at) => ({ id: at, parent: at === 0 ? null : at - 1, name: "f" }));
  const merged = mergedAlike(rows, { id: "id", sums: new Set(), kindOf: () => null, isApart: () => false });
  expect(merged.length).toBe(20_000);
});
