// What bars are called: by what their rows are grouped by, with what else tells one from another behind it.

import type { Cell, Row } from "../api/types";

/** The names of one bar. */
export interface BarName {
  /** What the row stands for. */
  readonly name: string;
  /** What tells it from other rows beside its name; empty where nothing is needed. */
  readonly beside: string;
  /** All of both, of a call stack every frame. */
  readonly whole: string;
}

/** Where the names of bars come from. */
export interface Naming {
  /** The column that rows are grouped by. */
  readonly column: string;
  /** What a row is called without a value in it. */
  readonly nameless: string;
  /** True where values are call stacks, of which a name has the frames that tell them apart. */
  readonly isStack?: boolean;
  /** A column that stands behind every name as soon as its values differ. */
  readonly beside?: string | undefined;
  /** Columns that stand behind the names of rows that are alike without them, one after another. */
  readonly apart?: readonly string[];
}

/** The name of each row's bar: with its rank, where rows of several ranks stand below each other. */
export function barNames(rows: readonly Row[], naming: Naming): BarName[] {
  const { column, nameless, isStack = false, beside, apart = [] } = naming;
  const values = rows.map((row) => row[column] ?? null);
  const stacks = isStack ? [...new Set(values.flatMap((value) => (value === null ? [] : [String(value)])))] : [];
  const names = values.map((value) =>
    value === null ? nameless : isStack ? framesApart(String(value), stacks) : String(value),
  );
  const more: string[][] = rows.map(() => []);
  const add = (at: number, value: Cell | undefined, words = "") => {
    if (value !== null && value !== undefined && value !== "") more[at]?.push(`${words}${value}`);
  };
  const differs = (name: string) => new Set(rows.map((row) => row[name])).size > 1;
  if (beside !== undefined && beside !== column && differs(beside))
    for (const [at, row] of rows.entries()) add(at, row[beside]);
  if (differs("rank")) for (const [at, row] of rows.entries()) add(at, row.rank, "rank ");
  for (const each of apart) {
    const known = names.map((name, at) => JSON.stringify([name, more[at]]));
    const isAlike = (at: number) =>
      known.some((other, nth) => nth !== at && other === known[at] && rows[nth]?.[each] !== rows[at]?.[each]);
    const alike = rows.map((_, at) => isAlike(at));
    for (const [at, row] of rows.entries()) if (alike[at]) add(at, row[each]);
  }
  return names.map((name, at) => ({
    name,
    beside: more[at]?.join(" · ") ?? "",
    whole: [values[at] === null ? nameless : String(values[at]), ...(more[at] ?? [])].join(" · "),
  }));
}

/**
 * The innermost frame of a stack, and where others begin with it, too, the first one behind it that only this has. A stack
 * is `file(line): function` joined by `;`, the innermost first.
 */
function framesApart(stack: string, stacks: readonly string[]): string {
  const frames = stack.split(";");
  let alike = stacks.filter((other) => other !== stack).map((other) => other.split(";"));
  let at = 0;
  for (; at < frames.length; at++) {
    alike = alike.filter((other) => other[at] === frames[at]);
    if (alike.length === 0) break;
  }
  const last = Math.min(at, frames.length - 1);
  const first = frameWords(frames[0] ?? "");
  if (last === 0) return first;
  return `${first} ‹ ${last > 1 ? "… ‹ " : ""}${frameWords(frames[last] ?? "")}`;
}

/** A frame with its function first, of its file the name alone, and without the address of an object. */
function frameWords(frame: string): string {
  const [, file, line, name] = /^(.+?)\((\d{1,9})\): (.+)$/s.exec(frame) ?? [];
  const bare = frame.replace(/ object at 0x[0-9a-f]+>$/, ">");
  return file === undefined ? bare : `${name} (${file.slice(file.lastIndexOf("/") + 1)}:${line})`;
}
