// Names that may follow in a query: tables, columns and functions that begin with what is being written.

import type { QuerySchema } from "../../api/types";

/** A name that fits. */
export interface Candidate {
  /** What is inserted. */
  readonly text: string;
  readonly label: string;
  readonly kind: "table" | "column" | "function";
  readonly about: string;
}

/** Names that fit, and what of the text one of them replaces. */
export interface Completion {
  readonly from: number;
  readonly to: number;
  readonly candidates: readonly Candidate[];
}

/** The most names that are listed. */
const MOST = 12;
/** Letters from which on names are listed unasked. */
const LETTERS = 2;

/** Words of SQL: who writes one of them wants no name. */
const KEYWORDS = new Set(
  (
    "all and any as asc between by case cast cross desc distinct else end except exists false filter from full group " +
    "having in inner intersect interval is join lateral left like limit natural not null nulls offset on or order outer " +
    "over partition right rows select set some then true union using values when where window with"
  ).split(" "),
);

/** Words of SQL that tables follow. */
const BEFORE_TABLES = new Set(["from", "join"]);

/** The names that fit at a place of a query; `isAsked` lists them whatever was written so far. */
export function completionAt(text: string, caret: number, schema: QuerySchema, isAsked = false): Completion | null {
  const before = withoutTexts(text.slice(0, caret));
  if (before === null || /^\w/.test(text.slice(caret))) return null;
  const [word = ""] = /[a-z_]\w*$/i.exec(before) ?? [];
  const from = caret - word.length;
  const start = before.slice(0, from);
  // In the middle of a number.
  if (/\d$/.test(start)) return null;
  const [, qualifier] = /([a-z_]\w*)\.$/i.exec(start) ?? [];
  const typed = word.toLowerCase();
  if (qualifier === undefined && !isAsked && (word.length < LETTERS || KEYWORDS.has(typed))) return null;
  const last = /(\w+)\s+$/.exec(start)?.[1]?.toLowerCase() ?? "";
  // After `AS`, or after the name of a table, follows a name that is new.
  const isNew = last === "as" || schema.tables.some((table) => table.name.toLowerCase() === last);
  if (qualifier === undefined && isNew && !isAsked) return null;

  const known = qualifier === undefined ? unqualified(text, last, schema) : columnsOf(text, qualifier, schema);
  const candidates = fitting(known, typed);
  // What is written already needs no list, in which Enter would choose another.
  const isWritten = candidates.some((candidate) => candidate.label.toLowerCase() === typed);
  return candidates.length === 0 || (isWritten && !isAsked) ? null : { from, to: caret, candidates };
}

/** Those that begin with what was typed, then those in which a later word does; each name once. */
function fitting(known: readonly Candidate[], typed: string): Candidate[] {
  const distinct = [...new Map(known.map((candidate) => [`${candidate.kind} ${candidate.label}`, candidate])).values()];
  const begins = distinct.filter(({ label }) => label.toLowerCase().startsWith(typed));
  const later = distinct.filter(({ label }) => label.toLowerCase().includes(`_${typed}`) && !begins.some(isOf(label)));
  return [...begins, ...(typed === "" ? [] : later)].slice(0, MOST);
}

const isOf = (label: string) => (candidate: Candidate) => candidate.label === label;

/** Names that stand alone, the likeliest first. */
function unqualified(text: string, last: string, schema: QuerySchema): Candidate[] {
  const used = aliases(text, schema);
  const ofUsed = [...new Set(used.values())].flatMap((table) => columns(table, schema));
  const tables = schema.tables.map(
    ({ name, row }) => ({ text: name, label: name, kind: "table", about: plain(row) }) as const,
  );
  const functions = schema.functions.map(
    ({ name, doc }) => ({ text: `${name}(`, label: name, kind: "function", about: plain(doc ?? "") }) as const,
  );
  if (BEFORE_TABLES.has(last)) return [...tables, ...functions];
  const others = used.size > 0 ? [] : schema.tables.flatMap((table) => columns(table.name, schema));
  return [...ofUsed, ...others, ...functions, ...tables];
}

/** What is told in a line has no code apart. */
const plain = (text: string): string => text.replaceAll("`", "");

/** The columns of what stands before a dot: a table, or another name of one. */
function columnsOf(text: string, qualifier: string, schema: QuerySchema): Candidate[] {
  const table = aliases(text, schema).get(qualifier.toLowerCase());
  const named = schema.tables.find(({ name }) => name.toLowerCase() === qualifier.toLowerCase())?.name;
  return columns(table ?? named, schema);
}

function columns(table: string | undefined, schema: QuerySchema): Candidate[] {
  const known = schema.tables.find(({ name }) => name === table)?.columns ?? [];
  return known.map(({ name, unit, doc }) => {
    const words = [table, unit !== "text" && unit, doc].filter(Boolean).join(" · ");
    return { text: name, label: name, kind: "column", about: plain(words) };
  });
}

/** The tables that a query names, by each name that they have in it. */
function aliases(text: string, schema: QuerySchema): Map<string, string> {
  const found = new Map<string, string>();
  const tables = new Map(schema.tables.map(({ name }) => [name.toLowerCase(), name]));
  for (const [, name = "", alias = ""] of text.matchAll(/\b([a-z_]\w*)\b(?=(?:\s+(?:as\s+)?([a-z_]\w*))?)/gi)) {
    const table = tables.get(name.toLowerCase());
    if (table === undefined) continue;
    found.set(name.toLowerCase(), table);
    if (alias && !KEYWORDS.has(alias.toLowerCase())) found.set(alias.toLowerCase(), table);
  }
  return found;
}

/** `text` with what is in quotes or a comment as spaces; null where it ends within. */
function withoutTexts(text: string): string | null {
  const blank = text.replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*\n|\/\*[\s\S]*?\*\//g, (part) =>
    " ".repeat(part.length),
  );
  return /['"]|--|\/\*/.test(blank) ? null : blank;
}

/** Where a list stands best: the line and the column of a place, both from 0. */
export function lineAndColumn(text: string, place: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, place);
  return { line: before.split("\n").length - 1, column: place - (before.lastIndexOf("\n") + 1) };
}
