// Light, dark, or as the system is. A habit of the person, not a part of what is shown: so it is not in the address.

import { effect, signal } from "@preact/signals";
import { remember, remembered } from "./remembered";

export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "stepscope-theme";

export const theme = signal<Theme>("auto");

/** Takes what was chosen before, and from then on does what is chosen. */
export function followTheme(): void {
  const known = THEMES.find((theme) => theme === remembered(KEY));
  if (known) theme.value = known;
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
    remember(KEY, theme.value);
  });
}
