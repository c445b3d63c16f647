/** Somewhere to go. */
export interface Destination {
  readonly title: string;
  readonly about: string;
  readonly href: string;
}

/** Those that have every word: first those whose title begins with it, then titles, then descriptions. */
export function found(all: readonly Destination[], typed: string): Destination[] {
  const words = typed.toLowerCase().replaceAll("_", " ").split(/\s+/).filter(Boolean);
  const ranked = all.map((destination, at) => {
    const title = destination.title.toLowerCase().replaceAll("_", " ");
    const about = destination.about.toLowerCase();
    const ranks = words.map((word) =>
      title.startsWith(word) ? 0 : title.includes(word) ? 1 : about.includes(word) ? 2 : 9,
    );
    return { destination, at, rank: Math.max(0, ...ranks) };
  });
  const kept = ranked.filter(({ rank }) => rank < 9);
  return kept.sort((a, b) => a.rank - b.rank || a.at - b.at).map(({ destination }) => destination);
}
