// How an address names a run: by its key, which stays when runs are added and after a restart. Links of old have its number.

interface Named {
  readonly id: number;
  readonly key: string;
}

/** True for a key, false for a number or nothing. */
export const isLasting = (text: string | undefined): boolean => text !== undefined && !/^\d*$/.test(text);

/** The run that `text` names; null when there is none. */
export function runNamed<R extends Named>(runs: readonly R[], text: string): R | null {
  const is = isLasting(text) ? ({ key }: R) => key === text : ({ id }: R) => String(id) === text;
  return runs.find(is) ?? null;
}
