// Which tracks stay when a person types a part of their names, or of the names of the groups that they are in.

import type { KeyedGroup } from "./layout";

/** What stays of all groups. */
export interface Kept {
  /** The keys of groups, tracks and counters that stay. */
  readonly keys: ReadonlySet<string>;
  /** Groups that stay for what is in them: they are open, so that it is seen. */
  readonly opened: ReadonlySet<string>;
  /** Tracks and counters that stay, and how many there are. */
  readonly tracks: number;
  readonly allTracks: number;
}

/** The key of a counter of a group. */
export const counterKey = (group: string, name: string): string => `${group}/${encodeURIComponent(name)}`;

/**
 * The tracks and counters whose path has every word of `text`, with the groups around them; null without a word. A number
 * is that number: 7 is not in 17.
 */
export function keptOf(groups: readonly KeyedGroup[], text: string): Kept | null {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean).map(wordOf);
  if (words.length === 0) return null;
  const keys = new Set<string>();
  const opened = new Set<string>();
  let tracks = 0;
  let allTracks = 0;
  const has = (path: string) => words.every((isIn) => isIn(path.toLowerCase()));
  const count = (key: string, isKept: boolean) => {
    allTracks++;
    if (!isKept) return;
    tracks++;
    keys.add(key);
  };
  const walk = ({ key, path, group, groups }: KeyedGroup): boolean => {
    const before = tracks;
    const isOwn = has(path);
    if (group.kind === "track") count(key, isOwn);
    for (const row of group.rows) {
      if (row.kind === "counter") count(counterKey(key, row.name), has(`${path} ▸ ${row.name}`));
    }
    const inner = groups.filter(walk);
    const isKept = isOwn || inner.length > 0 || tracks > before;
    if (isKept) keys.add(key);
    if (isKept && !isOwn) opened.add(key);
    return isKept;
  };
  for (const group of groups) walk(group);
  return { keys, opened, tracks, allTracks };
}

function wordOf(word: string): (path: string) => boolean {
  if (!/^\d+$/.test(word)) return (path) => path.includes(word);
  const number = new RegExp(`(?<!\\d)${word}(?!\\d)`);
  return (path) => number.test(path);
}
