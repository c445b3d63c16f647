import { expect, test } from "vitest";
import { boxesOf, findModule, kindOf, type Module, treeOf, visible } from "./tree";

const row = (path: string, total_ns: number | null) => {
  const at = path.lastIndexOf(".");
  return { path, name: path.slice(at + 1), parent: at < 0 ? null : path.slice(0, at), total_ns };
};
const ROWS = [
  row("GPT_0", 100),
  row("GPT_0.Block_0", 60),
  row("GPT_0.Block_0.Linear_0", 45),
  row("GPT_0.Block_0.Linear_1", 0),
  row("GPT_0.Block_1", 20),
  row("Loss_0", 100),
];

test("modules stand below their parents, in the order of the rows", () => {
  const roots = treeOf(ROWS);
  expect(roots.map((module) => module.path)).toEqual(["GPT_0", "Loss_0"]);
  const paths = (open: string[]) => visible(roots, new Set(open)).map((module) => module.path);
  expect(paths([])).toEqual(["GPT_0", "Loss_0"]);
  expect(paths(["GPT_0", "GPT_0.Block_0"])).toEqual(ROWS.map((row) => row.path));
  expect(paths(["GPT_0.Block_0"])).toEqual(["GPT_0", "Loss_0"]);
  expect(findModule(roots, "GPT_0.Block_0.Linear_1")?.depth).toBe(2);
  expect(findModule(roots, "nothing")).toBeNull();
});

test("a row whose parent is not there is a root", () => {
  expect(treeOf([row("A_0.B_0", 1)]).map((module) => [module.path, module.depth])).toEqual([["A_0.B_0", 0]]);
});

test("rows come in any order, and paths are made of names where there are none", () => {
  const paths = (modules: readonly Module[]): string[] =>
    modules.flatMap((module) => [`${module.depth} ${module.path}`, ...paths(module.children)]);
  expect(paths(treeOf([...ROWS].reverse())).sort()).toEqual(paths(treeOf(ROWS)).sort());
  const calls = [
    { id: 0, parent: 2, name: "aten::mm" },
    { id: 1, parent: null, name: "aten::add" },
    { id: 2, parent: null, name: "aten::linear" },
    { id: 3, parent: 9, name: "aten::mm" },
  ];
  expect(paths(treeOf(calls, "id"))).toEqual([
    "0 aten::add",
    "0 aten::linear",
    "1 aten::linear › aten::mm",
    "0 aten::mm",
  ]);
});

test("a tree of any depth is drawn as far as there is room", () => {
  const deep = Array.from({ length: 10_000 }, (_, at) => ({
    id: at,
    parent: at > 0 ? at - 1 : null,
    name: "f",
    total_ns: 5,
  }));
  expect(boxesOf(treeOf(deep, "id"), "total_ns", 0).length).toBe(120);
});

test("boxes are as wide as their share, and what children leave is the module itself", () => {
  const boxes = boxesOf(treeOf(ROWS), "total_ns", 0);
  expect(boxes.map(({ module, level, x, width }) => [module.name, level, x, width])).toEqual([
    ["GPT_0", 0, 0, 0.5],
    ["Block_0", 1, 0, 0.3],
    ["Linear_0", 2, 0, 0.225],
    ["Block_1", 1, 0.3, 0.1],
    ["Loss_0", 0, 0.5, 0.5],
  ]);
  expect(boxesOf(treeOf(ROWS), "total_ns", 0.25).length).toBe(3);
});

test("children never reach beyond their parent", () => {
  const boxes = boxesOf(treeOf([row("A_0", 10), row("A_0.B_0", 30), row("A_0.C_0", 10)]), "total_ns", 0);
  expect(boxes.map((box) => [box.x, box.width])).toEqual([
    [0, 1],
    [0, 0.75],
    [0.75, 0.25],
  ]);
});

test("what is not known has no box", () => {
  expect(boxesOf(treeOf([row("A_0", null)]), "total_ns", 0)).toEqual([]);
  expect(boxesOf(treeOf([row("A_0", 1)]), "flops", 0)).toEqual([]);
});

test("a kind is a name without its number", () => {
  expect(["Linear_3", "Linear", "A_1_2"].map(kindOf)).toEqual(["Linear", "Linear", "A_1"]);
  expect(["Linear_0–3 ×4", "A_0, 7–9 ×4"].map(kindOf)).toEqual(["Linear", "A"]);
});
