// An answer to a query as the table that pages show: columns with units, rows by the names of columns, in an order.

import type { Cell, Column, Num, QueryAnswer, QueryColumn, Row, Unit } from "../../api/types";
import type { Widths } from "../../components/table/widths";
import { shortCell } from "../../format/cell";

/** A column of an answer. */
export interface AnswerColumn extends Column {
  readonly isNumber: boolean;
}

export interface AnswerTable {
  readonly columns: readonly AnswerColumn[];
  readonly rows: readonly Row[];
}

const UNITS: readonly string[] = ["text", "count", "id", "ns", "bytes", "bytes_per_s", "ratio", "plain", "flag"];

/** The table that an answer is. Columns of the same name have a number each. */
export function tableOf(answer: QueryAnswer): AnswerTable {
  const names = distinct(answer.columns.map((column) => column.name));
  const columns = answer.columns.map((column, at) => ({
    name: names[at] ?? "",
    label: names[at] ?? "",
    unit: unitOf(column),
    doc: column.doc ?? "",
    is_right_aligned: isNumber(column),
    has_answers: true,
    isNumber: isNumber(column),
  }));
  return { columns, rows: rowsOf(answer, columns) };
}

/** The table with the rows of a further answer, which has the same columns. */
export function withMore(table: AnswerTable, answer: QueryAnswer): AnswerTable {
  return { columns: table.columns, rows: [...table.rows, ...rowsOf(answer, table.columns)] };
}

function rowsOf(answer: QueryAnswer, columns: readonly AnswerColumn[]): Row[] {
  // Not by assignment: `__proto__` is a name like others.
  return answer.rows.map((row) => Object.fromEntries(columns.map(({ name }, at) => [name, cellOf(row[at])])));
}

const isNumber = ({ type }: QueryColumn): boolean => type === "int" || type === "float";

/** The unit of a column's values; where nothing is known of a number, it is only that. */
export function unitOf(column: QueryColumn): Unit {
  if (column.unit !== null && UNITS.includes(column.unit)) return column.unit as Unit;
  if (isNumber(column)) return "number";
  return column.type === "flag" ? "flag" : "text";
}

/** A value as a cell: what is neither a text nor a number is told as JSON. */
export function cellOf(value: unknown): Cell {
  if (value === null || value === undefined) return null;
  if (typeof value === "object") return compactJson(value);
  return value as Cell;
}

/** A value as JSON without spaces, with every digit. */
function compactJson(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(compactJson).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const parts = Object.entries(value).map(([name, part]) => `${JSON.stringify(name)}:${compactJson(part)}`);
  return `{${parts.join()}}`;
}

function distinct(names: readonly string[]): string[] {
  const taken = new Set<string>(names);
  const seen = new Set<string>();
  return names.map((name) => {
    let [own, number] = [name, 2];
    while (seen.has(own) || (own !== name && taken.has(own))) own = `${name} (${number++})`;
    seen.add(own);
    return own;
  });
}

/**
 * The rows by a column: numbers falling, texts rising, as in other tables; with `-` before the name the other way round.
 * What is not known comes last. Another name leaves the order of the query.
 */
export function sorted({ columns, rows }: AnswerTable, sort: string): readonly Row[] {
  const isOther = sort.startsWith("-") && !columns.some((column) => column.name === sort);
  const column = columns.find(({ name }) => name === (isOther ? sort.slice(1) : sort));
  if (!column) return rows;
  const sign = (column.unit === "text") !== isOther ? 1 : -1;
  const known = rows.filter((row) => row[column.name] !== null);
  const unknown = rows.filter((row) => row[column.name] === null);
  known.sort((a, b) => sign * compared(a[column.name] as Known, b[column.name] as Known));
  return [...known, ...unknown];
}

type Known = string | Num | boolean;

const compared = (a: Known, b: Known): number => (a < b ? -1 : a > b ? 1 : 0);

/** Rows that widths are measured by. */
const MEASURED = 300;

/** Widths of columns by what is in them, in rem, and their sum. */
export function widthsFor({ columns, rows }: AnswerTable): Widths {
  const measured = rows.slice(0, MEASURED);
  const wished = columns.map(({ name, label, unit }) => {
    const longest = measured.reduce((most, row) => Math.max(most, shortCell(unit, row[name]).length), 0);
    // The head has an arrow beside its label.
    return Math.min(Math.max(Math.max(longest, label.length + 2) * 0.56 + 1.4, 4.5), 60);
  });
  const each = wished.map((width, at) => Math.min(width, columns[at]?.isNumber ? 16 : 26));
  return { each, wished, sum: each.reduce((sum, width) => sum + width, 0), isChosen: false };
}
