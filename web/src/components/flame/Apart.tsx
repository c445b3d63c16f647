import { hrefWith, params, setParams } from "../../state/route";
import { addressKey, type Module } from "./tree";

/** Whether a place is among those that an address has, one on a line. */
export function apartIn(keys: string): (place: string) => boolean {
  const known = new Set(keys.split("\n"));
  return (place) => known.has(addressKey(place));
}

/** Shows each of the rows that one stands for; the link keeps it. */
export function takeApart({ row }: Module): void {
  if (typeof row.alike === "string") setParams({ apart: [...params("apart"), addressKey(row.alike)] });
}

/** Undoes it. */
export function TogetherAgain() {
  return params("apart").length > 0 ? <a href={hrefWith({ apart: null })}>Alike ones as one again</a> : null;
}
