// Rows as an address has them: by the key of their group, which is made of names, and where they stand in it. Their numbers
// are those of one reading of a run.

import type { KeyedGroup } from "./layout";

/** What a closed group is drawn as, where that is none of its rows. */
const SUMMARY = "closed";

/** The keys of rows: those of one group that follow one another are one key, and all of a group are its own. */
export function keysOfRows(groups: readonly KeyedGroup[], rows: readonly number[]): string[] {
  const wanted = new Set(rows);
  return groups.flatMap(({ key, group }) => {
    const places = group.rows.flatMap(({ id }, at) => (wanted.has(id) ? [at] : []));
    const { summary } = group;
    const isSummary = summary !== null && wanted.has(summary) && !group.rows.some(({ id }) => id === summary);
    const all = places.length === group.rows.length && places.length > 0;
    const runs = all ? [key] : runsOf(places).map((run) => `${key} ${run}`);
    return isSummary ? [...runs, `${key} ${SUMMARY}`] : runs;
  });
}

/** The rows of keys; those of another run, or of what makes no sense, are none. */
export function rowsOfKeys(groups: readonly KeyedGroup[], keys: readonly string[]): number[] {
  if (keys.length === 0) return [];
  const known = new Map(groups.map(({ key, group }) => [key, group] as const));
  return keys.flatMap((text) => {
    const at = text.lastIndexOf(" ");
    const group = known.get(at < 0 ? text : text.slice(0, at));
    if (!group) return [];
    if (at < 0) return group.rows.map(({ id }) => id);
    const place = text.slice(at + 1);
    if (place === SUMMARY) return group.summary === null ? [] : [group.summary];
    const [, first, last = first] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(place) ?? [];
    return first === undefined ? [] : group.rows.slice(Number(first), Number(last) + 1).map(({ id }) => id);
  });
}

/** `[0, 1, 2, 5]` as `0-2` and `5`. */
function runsOf(places: readonly number[]): string[] {
  const runs: [first: number, last: number][] = [];
  for (const place of places) {
    const run = runs.at(-1);
    if (run && run[1] === place - 1) run[1] = place;
    else runs.push([place, place]);
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`));
}
