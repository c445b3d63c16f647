// Habits of a person, which the browser remembers. It may keep nothing, as in a frame of another site: then they last as long
// as the page.

/** What was remembered under a name; null without. */
export function remembered(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Remembers a text under a name. */
export function remember(name: string, text: string): void {
  try {
    localStorage.setItem(name, text);
  } catch {
    return;
  }
}
