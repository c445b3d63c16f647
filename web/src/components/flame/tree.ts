// The tree of modules, or of operators, from rows each of which names its parent; and where its boxes stand in a flame
// graph. Pure: what is drawn is decided here, numbers stay those of the rows.

import type { Cell, Row } from "../../api/types";

/** A module, or an operator, at its place in the tree of calls. */
export interface Module {
  /** What no other one is called. */
  readonly path: string;
  readonly name: string;
  readonly depth: number;
  readonly row: Row;
  readonly parent: Module | null;
  readonly children: Module[];
}

/** What stands between names where a path is made of them. */
export const CALLS = " › ";

/** The most levels of boxes that are drawn: deeper ones are in the table alone. */
const MOST_LEVELS = 120;

/**
 * The modules that nobody in the result calls, with all below them, in the order of the rows. `id` is the column that
 * `parent` refers to; paths are made of names where there are none.
 */
export function treeOf(rows: readonly Row[], id: "path" | "id" = "path"): Module[] {
  const below = new Map<string | null, Row[]>();
  const known = new Set(rows.map((row) => String(row[id])));
  for (const row of rows) {
    const parent = row.parent === null || row.parent === undefined ? null : String(row.parent);
    const key = parent !== null && known.has(parent) ? parent : null;
    const siblings = below.get(key);
    if (siblings) siblings.push(row);
    else below.set(key, [row]);
  }
  const children = (parent: Module | null): Module[] => {
    const rows = below.get(parent === null ? null : String(parent.row[id])) ?? [];
    return rows.map((row) => {
      const name = String(row.name);
      const path = id === "path" ? String(row.path) : parent ? parent.path + CALLS + name : name;
      return { path, name, depth: parent ? parent.depth + 1 : 0, row, parent, children: [] };
    });
  };
  const roots = children(null);
  const waiting = [...roots];
  for (let module = waiting.pop(); module; module = waiting.pop()) {
    module.children.push(...children(module));
    waiting.push(...module.children);
  }
  return roots;
}

/** The modules on the screen when those in `open` show their children, from top to bottom. */
export function visible(roots: readonly Module[], open: ReadonlySet<string>): Module[] {
  const shown: Module[] = [];
  const waiting = [...roots].reverse();
  for (let module = waiting.pop(); module; module = waiting.pop()) {
    shown.push(module);
    if (open.has(module.path)) waiting.push(...[...module.children].reverse());
  }
  return shown;
}

/** A box of the flame graph: left edge and width as shares of the whole. */
export interface Box {
  readonly module: Module;
  readonly level: number;
  readonly x: number;
  readonly width: number;
}

/**
 * The boxes of `roots` and all below them that are at least `narrowest` wide. A box is as wide as its part in its
 * level's value; children stand from the left, and what they leave is the module itself. Where children add up to more
 * than the module, as happens for times of several threads, they share its width.
 */
export function boxesOf(roots: readonly Module[], column: string, narrowest: number): Box[] {
  const boxes: Box[] = [];
  const place = (modules: readonly Module[], level: number, left: number, width: number, whole: number) => {
    const sum = modules.reduce((sum, module) => sum + amount(module.row[column]), 0);
    const each = width / Math.max(whole, sum);
    let x = left;
    for (const module of modules) {
      const value = amount(module.row[column]);
      const wide = value * each;
      if (wide >= narrowest && wide > 0 && level < MOST_LEVELS) {
        boxes.push({ module, level, x, width: wide });
        place(module.children, level + 1, x, wide, value);
      }
      x += wide;
    }
  };
  place(roots, 0, 0, 1, 0);
  return boxes;
}

/** The module with this path. */
export const findModule = (roots: readonly Module[], path: string): Module | null =>
  findIn(roots, (module) => module.path === path);

/** The first module that is the one. */
export function findIn(roots: readonly Module[], isIt: (module: Module) => boolean): Module | null {
  const waiting = [...roots];
  for (let module = waiting.pop(); module; module = waiting.pop()) {
    if (isIt(module)) return module;
    waiting.push(...module.children);
  }
  return null;
}

/** What kind of module it is: `Linear_3` is a `Linear`, and so are `Linear_0–3 ×4`. All of a kind have one colour. */
export const kindOf = (name: string): string => name.replace(/_[\d–, ]+( ×\d+)?$/, "");

/** A path as an address has it: a deep one is longer than an address should be. */
export function addressKey(path: string): string {
  if (path.length <= 120) return path;
  let hash = 0;
  for (let at = 0; at < path.length; at++) hash = (Math.imul(hash, 31) + path.charCodeAt(at)) | 0;
  return `…${path.slice(-60)} ${(hash >>> 0).toString(36)}`;
}

function amount(cell: Cell | undefined): number {
  const value = typeof cell === "number" || typeof cell === "bigint" ? Number(cell) : 0;
  return Math.max(0, value);
}
