import { kindOf } from "./tree";

const TINTS = 6;

/** The tint of a module: one for all of its kind, the same in every run. */
export function tintOf(name: string): string {
  let hash = 0;
  for (const letter of kindOf(name)) hash = (Math.imul(hash, 31) + (letter.codePointAt(0) ?? 0)) >>> 0;
  return `tint-${hash % TINTS}`;
}
