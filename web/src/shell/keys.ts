// Keys that mean the same on every page. A page's own keys are its own; they are listed here, so that help has them all.

import { signal } from "@preact/signals";
import { TIMELINE_KEYS } from "../canvas/keys";
import { isTyping } from "../components/typing";

export const isHelpOpen = signal(false);
export const isPaletteOpen = signal(false);

/** Keys and what they do, by where they work. */
export const KEYS: readonly { readonly where: string; readonly keys: readonly (readonly [string, string])[] }[] = [
  {
    where: "Everywhere",
    keys: [
      ["?", "this help"],
      ["Ctrl+K", "go to a page, a table, a run, a step or a name"],
      ["Esc", "close what is open"],
      ["Alt+←", "back, also to what was chosen before"],
    ],
  },
  { where: "Timeline", keys: TIMELINE_KEYS },
  {
    where: "Timelines that are compared",
    keys: [
      ["W, S", "zoom in and out, in both"],
      ["A, D or ← →", "move both in time"],
      ["F", "show the chosen steps"],
    ],
  },
  {
    where: "Tables",
    keys: [
      ["↑ ↓", "next and previous row"],
      ["Page Up, Page Down", "a screen of rows"],
      ["Home, End", "first and last row"],
      ["Enter", "open the row: every digit, and where it leads"],
      ["Ctrl+C", "copy the row, with every digit"],
      ["Shift+← →", "on a column's name: make it narrower or wider"],
    ],
  },
  {
    where: "Query",
    keys: [
      ["Ctrl+Enter", "run the query"],
      ["Ctrl+Space", "list the names that fit"],
      ["↑ ↓, Enter or Tab", "choose one of them"],
      ["Esc", "close the list"],
    ],
  },
  {
    where: "Charts",
    keys: [
      ["← →", "next and previous bar, or value of a curve"],
      ["Page Up, Page Down, Home, End", "farther, and to both ends of a curve or histogram"],
      ["Enter", "filter every page to it"],
    ],
  },
];

/** Listens for the keys that work everywhere, until the function that it returns is called. */
export function followKeys(): () => void {
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.defaultPrevented) return;
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) isPaletteOpen.value = true;
    else if (event.key === "?" && !isTyping(event.target)) isHelpOpen.value = true;
    else return;
    event.preventDefault();
  };
  addEventListener("keydown", onKeyDown);
  return () => removeEventListener("keydown", onKeyDown);
}
