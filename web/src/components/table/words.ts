// What cells say that are one of a few words: in results they are names for programs.

import type { Cell, Column, Row } from "../../api/types";
import { PARTS } from "../../classes";
import { shortCell } from "../../format/cell";
import { shortName } from "../../format/names";
import { withoutCode } from "../vocabulary";

/** Words for values of a column, by the column's name and the value; that of "" is for no value. */
export type Called = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Columns of which each value is one of a few names, such as `host_sync`. */
const KINDS = new Set([
  "action",
  "bound",
  "category",
  "cause",
  "class",
  "direction",
  "gain_estimate",
  "kind",
  "layer",
  "memory",
  "scenario",
  "source",
  "state",
  "waits_for",
  "work",
]);

/** Columns of sentences, in which code stands between backquotes. */
const SENTENCES = new Set(["disproof", "fault", "reason", "says", "to_do"]);

/** The parts of time that a column names, which have the words that charts have for them. */
const partsOf = (...names: string[]) => Object.fromEntries(names.map((name) => [name, PARTS[name]?.words ?? name]));

/** What is called otherwise than its name, in every table. */
const CALLED: Called = {
  state: { unpaired: "free not seen" },
  cause: partsOf(
    ...["compute", "slow_clock", "other_collective", "copy", "profiler_overhead", "garbage_collection", "allocation"],
    ...["host_sync", "input", "io", "launch_bound", "queue_wait", "peer_wait", "host_other", "device_wait"],
    ...["unknown", "unexplained"],
  ),
  class: partsOf(
    ...["compute", "communication", "copy", "launch_latency", "queue_wait", "host_sync", "dataloader", "runtime"],
    ...["host_op", "other"],
  ),
};

/** What a row is called that stands for others, by its `row`. */
const SUMS: Readonly<Record<string, string>> = { mean: "mean", sum: "all" };

/** A row that sums up others, or is their mean. */
export const isSum = (row: Row | undefined): boolean => typeof row?.row === "string" && Object.hasOwn(SUMS, row.row);

/** Whether each value of a column is one of a few words. */
export const isKind = ({ name }: Column): boolean => KINDS.has(name);

/** Whether a column has sentences, to be shown with `Words`. */
export const hasSentences = (column: Column): boolean => SENTENCES.has(column.name);

/** A text as a person reads it, where the column has names for programs, or sentences about code. */
export function kindWords(column: string, name: string): string {
  if (SENTENCES.has(column)) return withoutCode(name);
  return CALLED[column]?.[name] ?? (KINDS.has(column) ? name.replaceAll("_", " ") : name);
}

/** What a column is about, with values as cells have them. */
export const docWords = ({ name, doc }: Column): string => withoutCode(doc, (value) => kindWords(name, value));

/** What a person types for a value of a column as results have it. */
export function kindName(column: string, words: string): string {
  const known = Object.entries(CALLED[column] ?? {}).find(([, called]) => called === words)?.[0];
  return known ?? (KINDS.has(column) ? words.replaceAll(" ", "_") : words);
}

/** The values that are called by words which have the text: a search for it finds these, too. */
export function valuesCalled(text: string): string[] {
  if (text === "") return [];
  const part = text.toLowerCase();
  const called = Object.values(CALLED).flatMap((words) => Object.entries(words));
  return [...new Set(called.filter(([, words]) => words.toLowerCase().includes(part)).map(([name]) => name))];
}

/** A cell as it is shown. The first of `columns` that names rows says of a sum that it is one: it has no name there. */
export function cellWords(column: Column, row: Row, columns: readonly Column[], called: Called = {}): string {
  const value: Cell | undefined = row[column.name];
  if (typeof value === "string")
    return called[column.name]?.[value] ?? kindWords(column.name, shortCell("text", shortName(value)));
  if (value === null && isSum(row)) {
    const isNameless = ({ name, unit }: Column) => row[name] === null && (unit === "text" || unit === "id");
    if (columns.find(isNameless) === column) return SUMS[String(row.row)] ?? "";
  }
  const none = called[column.name]?.[""];
  if (value === null && none !== undefined) return none;
  return shortCell(column.unit, value);
}
