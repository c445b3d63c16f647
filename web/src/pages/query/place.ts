// Where an error is in a query: `line 1, column 8`.

/** A place in a text; both count from 1, columns by characters. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** The place that an error names; null where it names none. */
export function placeOf(where: string | null | undefined): Place | null {
  const [, line, column] = /\bline (\d{1,9}), column (\d{1,9})\b/i.exec(where ?? "") ?? [];
  if (line === undefined || column === undefined) return null;
  return { line: Math.max(1, Number(line)), column: Math.max(1, Number(column)) };
}

/** What to select of `text` to show a place: the word that begins there, or else one character. */
export function stretchAt(text: string, { line, column }: Place): readonly [from: number, to: number] {
  const lines = text.split("\n");
  const at = Math.min(line, lines.length) - 1;
  const own = lines[at] ?? "";
  const before = lines.slice(0, at).reduce((sum, earlier) => sum + earlier.length + 1, 0);
  // Columns count characters, a text's places count halves of some.
  const start = [...own].slice(0, column - 1).join("").length;
  const [word] = /^\w+|^./su.exec(own.slice(start)) ?? [""];
  return [before + start, before + start + word.length];
}

/** Characters of a line that are shown around a place. */
const AROUND = 40;

/** The line of a place, cut where it is long, and how many characters are before the place in it. */
export function excerptAt(text: string, { line, column }: Place): { readonly line: string; readonly before: number } {
  const own = [...(text.split("\n")[line - 1] ?? "")].map((character) => (character === "\t" ? " " : character));
  const at = Math.min(column - 1, own.length);
  const from = Math.max(0, at - AROUND);
  const to = Math.min(own.length, at + AROUND);
  const [head, tail] = [from > 0 ? "…" : "", to < own.length ? "…" : ""];
  return { line: `${head}${own.slice(from, to).join("")}${tail}`, before: at - from + head.length };
}
