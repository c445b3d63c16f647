// What stands on slices: their names, as much of them as has room.

/** How wide a text is, in pixels. */
export type Measure = (text: string) => number;

/** Widths that are remembered; more than this many and all are forgotten. */
const WIDTHS_MAX = 20_000;

/** Remembers widths: to measure a text takes longer than to draw it. */
export function remembering(measure: Measure): Measure {
  const widths = new Map<string, number>();
  return (text) => {
    const known = widths.get(text);
    if (known !== undefined) return known;
    if (widths.size >= WIDTHS_MAX) widths.clear();
    const width = measure(text);
    widths.set(text, width);
    return width;
  };
}

/**
 * The essential part of a name: of a C++ function its last name without result, namespaces, template arguments and
 * parameters. Other names are as they are.
 */
export function shortName(name: string): string {
  if (!name.startsWith("void ") && !/^[\w:]+<.*>\(/.test(name)) return name;
  const text = name
    .replace(/^void /, "")
    .replaceAll("(anonymous namespace)::", "")
    .replaceAll("{anonymous}::", "");
  const end = text.search(/[<(]/);
  const path = end < 0 ? text : text.slice(0, end);
  return path.split("::").at(-1) || name;
}

/** As much of a text as has room, with `…` where it is cut; empty when not even three letters have. */
export function fitting(text: string, room: number, measure: Measure): string {
  if (room < 12) return "";
  const width = measure(text);
  if (width <= room) return text;
  // What is far too long is not measured again and again: a letter takes about what the others take.
  let length = Math.min(Math.floor((text.length * room) / width), text.length - 1);
  while (length >= 3) {
    const cut = `${cutAt(text, length)}…`;
    if (measure(cut) <= room) return cut;
    length -= 1;
  }
  return "";
}

/** The first `length` units of a text, never half of a letter. */
function cutAt(text: string, length: number): string {
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? length - 1 : length);
}

/** As much of a text as has room, with `…` in its middle where it is cut; empty when not even two letters have. */
export function middleCut(text: string, room: number, measure: Measure): string {
  if (measure(text) <= room) return text;
  const letters = [...text];
  // By halving: how many letters stay.
  let [low, high] = [0, letters.length - 1];
  const cut = (count: number) => {
    const end = Math.floor(count / 2);
    return `${letters.slice(0, count - end).join("")}…${end > 0 ? letters.slice(-end).join("") : ""}`;
  };
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (measure(cut(middle)) <= room) low = middle;
    else high = middle - 1;
  }
  return low < 2 ? "" : cut(low);
}
