// What classes are called.

import { CLASSES } from "../classes";

/** By their number in tiles. */
export const CLASS_WORDS: readonly string[] = [
  "other",
  "compute",
  "communication",
  "copy",
  "synchronization",
  "host op",
  "label or step",
  "Python or module",
  "runtime call",
  "input",
  "overhead",
];

/** By their name in JSON, which has `_` where styles have `-`. */
export function classWords(name: string): string {
  const nth = (CLASSES as readonly string[]).indexOf(name.replaceAll("_", "-"));
  return CLASS_WORDS[nth] ?? name;
}
