// A chart that is read by keyboard: it is a slider over its places, and says what is at the one where it stands.

/** Where a key leads, of `count` places; null for other keys. */
export function placeAfter(key: string, at: number | null, count: number): number | null {
  const here = at ?? -1;
  const far = Math.max(1, Math.round(count / 20));
  const places: Readonly<Record<string, number>> = {
    ArrowRight: here + 1,
    ArrowUp: here + 1,
    ArrowLeft: here - 1,
    ArrowDown: here - 1,
    PageUp: here + far,
    PageDown: here - far,
    Home: 0,
    End: count - 1,
  };
  if (count === 0 || !Object.hasOwn(places, key)) return null;
  return Math.max(0, Math.min(count - 1, places[key] ?? 0));
}

/** What makes an element the slider over `count` places, of which it stands at one or at none. */
export function sliderOf(
  count: number,
  label: string,
  at: number | null,
  words: (at: number) => string,
  onMove: (at: number) => void,
) {
  const onKeyDown = (event: KeyboardEvent) => {
    const next = event.ctrlKey || event.altKey || event.metaKey ? null : placeAfter(event.key, at, count);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    onMove(next);
  };
  return {
    role: "slider",
    tabindex: 0,
    "aria-label": label,
    "aria-valuemin": 0,
    "aria-valuemax": Math.max(0, count - 1),
    "aria-valuenow": at ?? 0,
    "aria-valuetext": at === null ? "arrow keys read its values" : words(at),
    onKeyDown,
  } as const;
}
