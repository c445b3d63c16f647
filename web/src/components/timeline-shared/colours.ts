// A canvas has no style sheet: it reads the page's colours, and reads them again when the page has others.

import { effect } from "@preact/signals";
import type { Timeline } from "../../canvas/timeline";
import { theme } from "../../state/theme";

/** Follows the colours of the page until the function that it returns is called. `search` is what stands out. */
export function followColours(timeline: Timeline, search: () => string): () => void {
  const read = () => timeline.setTheme(search());
  const stop = effect(() => {
    theme.value;
    read();
  });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", read);
  return () => {
    stop();
    dark.removeEventListener("change", read);
  };
}
