// Whether the page is laid out for paper: there is no scrolling then, and what is only near the screen must be there.

import { signal } from "@preact/signals";

const paper = globalThis.matchMedia?.("print");
let isBetween = false;

/** True from before the page is laid out for paper until after it. */
export const isPrinting = signal(paper?.matches ?? false);

function follow(isOn = isBetween): void {
  isBetween = isOn;
  isPrinting.value = isOn || (paper?.matches ?? false);
}
paper?.addEventListener("change", () => follow());
// The browser lays out anew as soon as these have been told.
globalThis.addEventListener?.("beforeprint", () => follow(true));
globalThis.addEventListener?.("afterprint", () => follow(false));
