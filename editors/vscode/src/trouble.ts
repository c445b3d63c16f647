// What keeps a person from what was asked for.

/** What went wrong, where, and what to do about it. */
export class Trouble extends Error {
  constructor(
    what: string,
    readonly hint: string,
    readonly where = "",
  ) {
    super(what);
  }
}

/** A failure in one line, whatever was thrown. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof Trouble)) return error instanceof Error ? error.message : String(error);
  const place = error.where === "" ? "" : `: ${error.where}`;
  return `${error.message}${place}. ${error.hint}`;
}
