// Tiles as the server would send them, for tests and measurements. The layout is that of docs/http-api.md.

/** An item as it is written down in a test. */
export interface Item {
  readonly start_ns: number;
  readonly dur_ns: number;
  readonly busy_ns?: number;
  readonly slice?: number;
  readonly count?: number;
  readonly name: string;
  readonly class?: number;
  readonly flags?: number;
}

/** An answer with these blocks of items. */
export function encodeTiles(blocks: readonly (readonly Item[])[]): ArrayBuffer {
  const items = blocks.flat();
  const names = [...new Set(items.map((item) => item.name))];
  const numbers = new Map(names.map((name, at) => [name, at]));
  const texts = names.map((name) => new TextEncoder().encode(name));
  const ends = [0];
  for (const text of texts) ends.push((ends.at(-1) ?? 0) + text.length);

  const parts: Uint8Array[] = [];
  let length = 0;
  const put = (part: ArrayBufferView) => {
    const padding = (8 - (length % 8)) % 8;
    parts.push(new Uint8Array(padding), new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
    length += padding + part.byteLength;
  };
  put(new Uint32Array([0x314c5453, blocks.length, items.length, names.length]));
  put(new Uint32Array(blocks.map((block) => block.length)));
  put(new Float64Array(items.map((item) => item.start_ns)));
  put(new Float64Array(items.map((item) => item.dur_ns)));
  put(new Float64Array(items.map((item) => item.busy_ns ?? item.dur_ns)));
  put(new Uint32Array(items.map((item) => item.slice ?? 0)));
  put(new Uint32Array(items.map((item) => item.count ?? 1)));
  put(new Uint32Array(items.map((item) => numbers.get(item.name) ?? 0)));
  put(new Uint8Array(items.map((item) => item.class ?? 0)));
  put(new Uint8Array(items.map((item) => item.flags ?? 0)));
  put(new Uint32Array(ends));
  put(new Uint8Array(texts.flatMap((text) => [...text])));

  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes.buffer;
}

/** Slices of a row. */
export interface Slices {
  readonly start_ns: number;
  readonly dur_ns: number;
  readonly name: string;
  readonly class?: number;
}

/** The items of tile `tile` of `level`, for slices that do not overlap, by start: the slow and obvious way. */
export function itemsOf(slices: readonly Slices[], level: number, tile: number): Item[] {
  const bin = 2 ** level;
  const from = tile * 512 * bin;
  const to = from + 512 * bin;
  const items: Item[] = [];
  const bins = new Map<number, { slice: Slices; id: number }[]>();
  slices.forEach((slice, id) => {
    const begins = slice.start_ns >= from && slice.start_ns < to;
    if (slice.dur_ns >= bin) {
      const touches = slice.start_ns < to && slice.start_ns + slice.dur_ns > from;
      if (touches) items.push({ ...slice, slice: id, count: begins ? 1 : 0 });
    } else if (begins) {
      const at = Math.floor(slice.start_ns / bin);
      bins.set(at, [...(bins.get(at) ?? []), { slice, id }]);
    }
  });
  for (const group of bins.values()) {
    const first = group[0];
    const last = group.at(-1);
    if (!first || !last) continue;
    const longest = group.reduce((a, b) => (b.slice.dur_ns > a.slice.dur_ns ? b : a));
    const dur_ns = last.slice.start_ns + last.slice.dur_ns - first.slice.start_ns;
    const busy_ns = group.reduce((sum, one) => sum + one.slice.dur_ns, 0);
    const flags = group.length > 1 ? 2 : 0;
    const start_ns = first.slice.start_ns;
    items.push({ ...longest.slice, start_ns, dur_ns, busy_ns, slice: longest.id, count: group.length, flags });
  }
  return items.sort((a, b) => a.start_ns - b.start_ns);
}
