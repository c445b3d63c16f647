// What keys do on the timeline: those of Perfetto. Help is made of this list.

import type { Held } from "./motion";

export type Command =
  | "fit"
  | "next"
  | "previous"
  | "flow-next"
  | "flow-previous"
  | "path-next"
  | "path-previous"
  | "mark"
  | "search"
  | "find-track"
  | "clear"
  | "list"
  | "parent"
  | "child";

/** Keys and what they do, in words. */
export const TIMELINE_KEYS: readonly (readonly [key: string, does: string])[] = [
  ["W, S", "zoom in and out at the pointer"],
  ["A, D or ← →", "move in time"],
  ["F, double-click", "show the selection, or everything, as large as it can be"],
  [". ,", "next and previous slice on the row"],
  ["↑ ↓", "the slice around this one, the first one inside it"],
  ["] [", "follow an arrow forwards and backwards"],
  ["N B", "the next and the previous piece of the critical path"],
  ["M", "mark the moment at the pointer, or the start of the selection; again: take the mark away"],
  ["/", "search; Enter and Shift+Enter: next and previous hit"],
  ["Ctrl+P", "find a track"],
  ["L", "what is shown as a list"],
  ["Esc", "select nothing"],
  ["Wheel", "scroll; with Shift: move in time; with Ctrl: zoom"],
  ["Drag", "select a range, from edge to edge (Alt: anywhere); with Shift: move in time"],
];

const HELD: Readonly<Record<string, Held>> = {
  w: "in",
  s: "out",
  a: "left",
  d: "right",
  arrowleft: "left",
  arrowright: "right",
};

const COMMANDS: Readonly<Record<string, Command>> = {
  f: "fit",
  ".": "next",
  ",": "previous",
  "]": "flow-next",
  "[": "flow-previous",
  n: "path-next",
  b: "path-previous",
  m: "mark",
  "/": "search",
  l: "list",
  escape: "clear",
  arrowup: "parent",
  arrowdown: "child",
};

/** A key press, as far as it matters here. */
export interface Press {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
}

/** The movement that lasts while a key is held. */
export function heldOf({ key, ctrlKey, metaKey, altKey }: Press): Held | null {
  if (ctrlKey || metaKey || altKey) return null;
  return lookUp(HELD, key);
}

/** What a key press does once. */
export function commandOf({ key, ctrlKey, metaKey, altKey }: Press): Command | null {
  if ((ctrlKey || metaKey) && !altKey) return key.toLowerCase() === "p" ? "find-track" : null;
  return altKey ? null : lookUp(COMMANDS, key);
}

function lookUp<T>(table: Readonly<Record<string, T>>, key: string): T | null {
  const name = key.toLowerCase();
  return Object.hasOwn(table, name) ? (table[name] ?? null) : null;
}
