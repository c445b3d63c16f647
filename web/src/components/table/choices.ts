// What is chosen for a table: order, search, conditions, columns. It stands in the address; a prefix tells tables of
// one page apart.

import type { Query } from "../../api/paths";
import type { Column, RunDetail } from "../../api/types";
import { type Changes, paramOf, paramsOf, type Route } from "../../state/url";
import { valuesCalled } from "./words";

/** How a condition compares; the words are what a person chooses from. */
export const OPERATORS = {
  has: "has",
  eq: "=",
  ne: "≠",
  lt: "<",
  le: "≤",
  gt: ">",
  ge: "≥",
} as const;
export type Operator = keyof typeof OPERATORS;

/** A condition that rows meet. */
export interface Condition {
  readonly column: string;
  readonly operator: Operator;
  readonly value: string;
}

export interface Choices {
  /** A column, with `-` before it for the other way round; empty for the order of the analysis. */
  readonly sort: string;
  readonly search: string;
  readonly where: readonly Condition[];
  /** The columns to show; null for those of the page. */
  readonly columns: readonly string[] | null;
}

/** The choices that a route has for the table with this prefix; what makes no sense is left out. */
export function choicesAt(route: Route, prefix: string): Choices {
  const columns = paramOf(route, `${prefix}cols`);
  return {
    sort: paramOf(route, `${prefix}sort`) ?? "",
    search: paramOf(route, `${prefix}q`) ?? "",
    where: paramsOf(route, `${prefix}where`).flatMap((text) => parseCondition(text) ?? []),
    columns: columns === undefined ? null : columns.split(",").filter((name) => name !== ""),
  };
}

/** The changes of the route that make it have `choices`. */
export function changesFor(choices: Partial<Choices>, prefix: string): Changes {
  const changes: Record<string, string | readonly string[] | null> = {};
  if (choices.sort !== undefined) changes[`${prefix}sort`] = choices.sort || null;
  if (choices.search !== undefined) changes[`${prefix}q`] = choices.search || null;
  if (choices.where !== undefined) changes[`${prefix}where`] = choices.where.map(formatCondition);
  if (choices.columns !== undefined) changes[`${prefix}cols`] = choices.columns ? choices.columns.join(",") : null;
  return changes;
}

/** The choices as parameters of a request. */
export function queryOf(choices: Choices, order: string): Query {
  return [
    ["sort", choices.sort || order],
    ["search", choices.search],
    ...valuesCalled(choices.search).map((value) => ["or", value] as const),
    ...choices.where.map((condition) => ["where", formatCondition(condition)] as const),
  ];
}

/** `COLUMN:OP:VALUE`; the value may hold colons. */
export function parseCondition(text: string): Condition | null {
  const [, column, operator, value] = /^([^:]+):([a-z]{2,3}):([\s\S]*)$/.exec(text) ?? [];
  if (column === undefined || value === undefined || !isOperator(operator)) return null;
  return { column, operator, value };
}

export const formatCondition = ({ column, operator, value }: Condition): string => `${column}:${operator}:${value}`;

/** The order after a click on a column's head: falling, the other way round, as it was. */
export function nextSort(sort: string, column: string): string {
  if (sort === column) return `-${column}`;
  return sort === `-${column}` ? "" : column;
}

/** What assistive technology is told of a column's order: `sort=COLUMN` has numbers falling and texts rising. */
export function ariaSort(sort: string, column: Column): "ascending" | "descending" | undefined {
  const isOther = sort === `-${column.name}`;
  if (sort !== column.name && !isOther) return undefined;
  return (column.unit === "text") !== isOther ? "ascending" : "descending";
}

/** The columns to show: those chosen; else those with any answer, without those that a page keeps back. */
export function shownColumns(
  columns: readonly Column[],
  chosen: readonly string[] | null,
  hidden: readonly string[],
): Column[] {
  if (chosen) {
    const known = columns.filter((column) => chosen.includes(column.name));
    if (known.length > 0) return known;
  }
  // That a row stands for others is seen without the column that says so.
  return columns.filter(({ name, has_answers }) => has_answers && name !== "row" && !hidden.includes(name));
}

/** Of devices, where a step's time goes to. */
const OF_DEVICES = ["kernel_ns", "memcpy_ns", "memset_ns", "runtime_ns"];
const OF_DEVICE = ["total_ns", "self_ns", "union_ns"].map((name) => `device_${name}`);
const MODULES_ON_DEVICE = ["device_total_ns", "device_self_ns"].flatMap((name) => [
  `forward_${name}`,
  `backward_${name}`,
]);

/** Columns that say the same in all rows of a run: its only rank, and 0 for devices that it has none of. */
export function namesOfNothing(run: RunDetail | null): string[] {
  if (!run) return [];
  return [
    ...(run.ranks.length === 1 ? ["rank"] : []),
    ...(run.has.devices ? [] : [...OF_DEVICES, ...OF_DEVICE, ...MODULES_ON_DEVICE]),
  ];
}

function isOperator(text: string | undefined): text is Operator {
  return text !== undefined && Object.hasOwn(OPERATORS, text);
}
