// The threads whose calls can be shown apart from the others.

import type { Row } from "../../api/types";
import { linkedName } from "../../components/links";
import { clipped, printable } from "../../format/printable";

/** Threads that can be chosen: those with the most time. */
const MOST_THREADS = 200;
/** Characters of a name that there is room for. */
const ROOM = 80;

/** Each thread of some rows, as a link has it and in words, in the order of the rows; the one that is chosen in any case. */
export function threadsOf(
  rows: readonly Row[],
  chosen: string | undefined,
): (readonly [name: string, words: string])[] {
  const known = new Set(rows.flatMap(({ thread }) => (typeof thread === "string" ? [linkedName(thread)] : [])));
  const names = [...known].slice(0, MOST_THREADS);
  if (chosen !== undefined && !names.includes(chosen)) names.push(chosen);
  return names.map((name) => [name, threadWords(name)] as const);
}

/** A thread's name where there is little room. */
export const threadWords = (name: string): string => clipped(printable(name), ROOM);
