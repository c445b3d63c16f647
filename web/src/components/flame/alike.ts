// Modules beside each other that differ by their number, such as the layers of a model, as one row, and so what is in them.

import type { Cell, Row } from "../../api/types";
import { CALLS } from "./tree";

/** Which rows become one, and what the one has. */
export interface Alike {
  /** The column that `parent` refers to. */
  readonly id: "id" | "path";
  /** Columns that add up; other numbers are not known of several. */
  readonly sums: ReadonlySet<string>;
  /** What rows must share beside the begin of their names; null for a row that has no number. */
  readonly kindOf: (row: Row) => string | null;
  /** Whether the rows of a place are shown each by itself. */
  readonly isApart: (place: string) => boolean;
}

/** Columns that say where a row is. */
const PLACES: ReadonlySet<string> = new Set(["depth", "id", "parent"]);

interface Node {
  readonly first: Row;
  readonly parent: Node | null;
  readonly place: string;
  readonly below: Map<string, Node>;
  readonly rows: Row[];
  readonly names: Set<string>;
}

/**
 * The rows in which those that are alike are one, those above first. One that stands for several has in `alike` what
 * `isApart` knows it by.
 */
export function mergedAlike(rows: readonly Row[], { id, sums, kindOf, isApart }: Alike): Row[] {
  const nodes: Node[] = [];
  const nodeOf = new Map<string, Node>();
  const roots = new Map<string, Node>();
  for (const row of parentsFirst(rows, id)) {
    const parent = row.parent === null ? null : (nodeOf.get(String(row.parent)) ?? null);
    const kind = kindOf(row);
    const number = kind === null ? null : numberOf(String(row.name));
    const own = `${row.kind ?? ""} ${row.name}`;
    const alike = number === null ? own : `${kind} ${number.stem}#`;
    const above = parent ? parent.place + CALLS : "";
    const key = number !== null && isApart(above + alike) ? own : alike;
    const siblings = parent?.below ?? roots;
    let node = siblings.get(key);
    if (!node) {
      node = { first: row, parent, place: above + key, below: new Map(), rows: [], names: new Set() };
      siblings.set(key, node);
      nodes.push(node);
    }
    node.rows.push(row);
    node.names.add(String(row.name));
    nodeOf.set(String(row[id]), node);
  }
  const shown = new Map<Node, Row>();
  for (const node of nodes) {
    const { first, parent, place } = node;
    const above = parent && shown.get(parent);
    const name = node.names.size > 1 ? alikeName([...node.names]) : String(first.name);
    const row: Record<string, Cell> = { ...first, name, parent: above ? (above[id] ?? null) : null };
    if (node.rows.length > 1)
      for (const column of Object.keys(first)) {
        if (sums.has(column)) row[column] = sum(...node.rows.map((row) => row[column]));
        else if (isNumber(first[column]) && !PLACES.has(column)) row[column] = null;
      }
    if (node.names.size > 1) row.alike = place;
    if (id === "path") row.path = above ? `${above.path}${ownPart(first)}${name}` : name;
    shown.set(node, row);
  }
  return [...shown.values()];
}

/** What stands between the path of a module and its name. */
function ownPart({ path, parent, name }: Row): string {
  const own = String(path).slice(String(parent ?? "").length);
  return own.endsWith(String(name)) ? own.slice(0, own.length - String(name).length) : ".";
}

/** Rows each of which stands behind the one that it names as its parent. */
function parentsFirst(rows: readonly Row[], id: "id" | "path"): Row[] {
  const levels = new Map<string, number>();
  const byId = new Map(rows.map((row) => [String(row[id]), row]));
  const levelOf = (row: Row): number => {
    const way: Row[] = [];
    for (let at: Row | undefined = row; at && !levels.has(String(at[id])) && way.length <= rows.length; ) {
      way.push(at);
      at = at.parent === null ? undefined : byId.get(String(at.parent));
    }
    for (const at of way.reverse()) levels.set(String(at[id]), (levels.get(String(at.parent)) ?? -1) + 1);
    return levels.get(String(row[id])) ?? 0;
  };
  return [...rows].sort((one, other) => levelOf(one) - levelOf(other));
}

/** `Layer_3` and `layers.3` end in a number, and `3` is one. */
function numberOf(name: string): { readonly stem: string; readonly number: number } | null {
  const [, stem = "", number] = /^(.*[._])?(\d{1,9})$/s.exec(name) ?? [];
  return number === undefined ? null : { stem, number: Number(number) };
}

/** `Layer_0–23 ×24`: the numbers of what became one, and how many there are. */
export function alikeName(names: readonly string[]): string {
  const numbers = names.map((name) => numberOf(name)?.number ?? 0).sort((one, other) => one - other);
  const runs: [first: number, last: number][] = [];
  for (const number of numbers) {
    const run = runs.at(-1);
    if (run && run[1] === number - 1) run[1] = number;
    else runs.push([number, number]);
  }
  const whole: [number, number][] = [[numbers[0] ?? 0, numbers.at(-1) ?? 0]];
  const written = (runs.length > MOST_RUNS ? whole : runs).map(([first, last]) =>
    first === last ? `${first}` : last === first + 1 ? `${first}, ${last}` : `${first}–${last}`,
  );
  return `${numberOf(names[0] ?? "")?.stem ?? ""}${written.join(", ")} ×${names.length}`;
}

/** Runs of numbers that are written; of more the first and the last number. */
const MOST_RUNS = 3;

const isNumber = (cell: Cell | undefined): boolean => typeof cell === "number" || typeof cell === "bigint";

/** The sum of those that are known. */
export function sum(...cells: readonly (Cell | undefined)[]): Cell {
  const known = cells.filter((cell) => typeof cell === "number" || typeof cell === "bigint");
  if (known.length === 0) return null;
  if (known.every((cell) => typeof cell === "number")) return known.reduce((all, cell) => all + cell, 0);
  return known.reduce<bigint>((all, cell) => all + BigInt(typeof cell === "number" ? Math.round(cell) : cell), 0n);
}
