// Tracks by what a person remembers of their names.

import type { KeyedGroup } from "./layout";

/** How many are shown. */
const FOUND_MAX = 50;

/** The groups whose path has every word of `text`, those that have it in their own name first. */
export function tracksMatching(groups: readonly KeyedGroup[], text: string): KeyedGroup[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (where: string) => words.every((word) => where.toLowerCase().includes(word));
  const found = groups.filter(({ path }) => has(path));
  const own = found.filter(({ group }) => has(group.name));
  const others = found.filter(({ group }) => !has(group.name));
  return [...own, ...others].slice(0, FOUND_MAX);
}
