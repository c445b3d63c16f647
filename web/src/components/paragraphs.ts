/** A paragraph of a longer text; an item is one of a numbered list. */
export interface Paragraph {
  readonly text: string;
  readonly isItem: boolean;
}

/** The paragraphs of the comment of an analysis: blank lines and numbers at the start of a line part them. */
export function paragraphs(text: string): Paragraph[] {
  const parts = text.split(/\n\s*\n|\n(?=\d+\. )/);
  const lines = parts.map((part) => part.replace(/\s*\n\s*/g, " ").trim());
  return lines.filter((line) => line !== "").map((line) => ({ text: line, isItem: /^\d+\. /.test(line) }));
}
