// Lines of a file beside what `source_lines` says of them.

import type { Row } from "../../api/types";

/** What the server says of a file: its lines, or what to do where it is not found. */
export type SourceAnswer = Excerpt | { readonly file: string; readonly lines: null; readonly hint: string };

/** Lines of a file. */
export interface Excerpt {
  readonly file: string;
  readonly first_line: number;
  readonly lines: readonly string[];
  readonly editor_path: string;
  readonly editor_url: string | null;
}

/** A line, and the rows that are of it: several when functions share it. */
export interface CodeLine {
  readonly number: number;
  readonly text: string;
  readonly rows: readonly Row[];
}

/** The lines of `excerpt`, each with its rows in their order. */
export function codeLines(excerpt: Excerpt, rows: readonly Row[]): CodeLine[] {
  const byLine = new Map<number, Row[]>();
  for (const row of rows) {
    if (row.line === null || row.line === undefined) continue;
    const line = Number(row.line);
    byLine.set(line, [...(byLine.get(line) ?? []), row]);
  }
  return excerpt.lines.map((text, at) => {
    const number = excerpt.first_line + at;
    return { number, text, rows: byLine.get(number) ?? [] };
  });
}

/** A line's number as an address has it; null for what is none. */
export function lineOf(text: string | undefined): number | null {
  return text !== undefined && /^[1-9]\d{0,8}$/.test(text) ? Number(text) : null;
}
