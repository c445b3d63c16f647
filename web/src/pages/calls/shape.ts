// What is left of a tree of calls when some kinds are left out, or calls of the same name within each other are one.

import type { Cell, Row } from "../../api/types";
import { sum } from "../../components/flame/alike";

/** What a person wants to see of the tree. */
export interface Shape {
  /** Kinds whose rows are left out: what they call is called by who called them. */
  readonly hidden: ReadonlySet<string>;
  /** True where a call inside one of the same name counts as the same. */
  readonly isRecursionMerged: boolean;
  /** Only what has this in its name, with what is around and below it. */
  readonly search: string;
}

/** Columns that a row has for itself: what is dissolved in another row adds to its own. */
const OWN = ["host_self_ns", "device_self_ns"] as const;
/** Columns that add up where rows become one. */
export const SUMS = ["count", "host_total_ns", "device_total_ns", "allocated_bytes", "flops", ...OWN] as const;

interface Node {
  readonly row: Record<string, Cell>;
  readonly parent: Node | null;
  readonly below: Map<string, Node>;
}

const keyOf = (row: Row): string => `${row.kind} ${row.name}`;

/** The rows of the tree in this shape, each with `id` and `parent`; those above come first. */
export function shaped(rows: readonly Row[], shape: Shape): Row[] {
  const nodes: Node[] = [];
  // By the number of a row: where it went.
  const places = new Map<string, Node | null>();
  const roots = new Map<string, Node>();
  // Rows above others come first in the answer as well, but not where only times decide.
  for (const row of [...rows].sort((one, other) => Number(one.depth) - Number(other.depth))) {
    const parent = row.parent === null ? null : (places.get(String(row.parent)) ?? null);
    const isSame = shape.isRecursionMerged && parent !== null && keyOf(parent.row) === keyOf(row);
    if (isSame || shape.hidden.has(String(row.kind))) {
      if (parent) for (const column of OWN) parent.row[column] = sum(parent.row[column], row[column]);
      if (parent && isSame) parent.row.count = sum(parent.row.count, row.count);
      places.set(String(row.id), parent);
      continue;
    }
    const siblings = parent?.below ?? roots;
    const sibling = keyOf(row);
    const known = siblings.get(sibling);
    if (known) {
      for (const column of SUMS) known.row[column] = sum(known.row[column], row[column]);
      places.set(String(row.id), known);
      continue;
    }
    const id = nodes.length;
    const node: Node = {
      row: { ...row, id, parent: parent ? (parent.row.id ?? null) : null },
      parent,
      below: new Map(),
    };
    siblings.set(sibling, node);
    nodes.push(node);
    places.set(String(row.id), node);
  }
  const wanted = shape.search.toLowerCase();
  if (wanted === "") return nodes.map(({ row }) => row);
  const kept = new Set<Node>();
  for (const node of nodes) {
    // What is below something that was found stays as well.
    const isBelow = node.parent !== null && kept.has(node.parent) && isFound(node.parent, wanted);
    if (isBelow || isFound(node, wanted))
      for (let at: Node | null = node; at && !kept.has(at); at = at.parent) kept.add(at);
  }
  return nodes.filter((node) => kept.has(node)).map(({ row }) => row);
}

/** Whether a row, or one above it, has the text in its name. */
function isFound(node: Node, wanted: string): boolean {
  for (let at: Node | null = node; at; at = at.parent)
    if (String(at.row.name).toLowerCase().includes(wanted)) return true;
  return false;
}
