// Numbers that look random, the middle and the end of a list, and a table.

/** Numbers from 0 to 1 that look random and are the same each time. */
export function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The value below which this share of a list lies; NaN of an empty one. */
export function quantile(list, share) {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}

export const ms = (value) => (Number.isFinite(value) ? `${value.toFixed(value < 100 ? 1 : 0)} ms` : "–");
export const seconds = (value_ms) => (Number.isFinite(value_ms) ? `${(value_ms / 1000).toFixed(2)} s` : "–");
export const megabytes = (bytes) =>
  Number.isFinite(bytes) ? `${Math.round(bytes / 1e6).toLocaleString("en")} MB` : "–";
export const count = (value) => value.toLocaleString("en");

/** Rows of texts under a heading, as Markdown: it is read in a terminal as well. */
export function table(rows) {
  const widths = rows[0].map((_, at) => Math.max(...rows.map((row) => row[at].length)));
  const line = (row) => `| ${row.map((cell, at) => cell.padEnd(widths[at])).join(" | ")} |`;
  return [
    line(rows[0]),
    `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`,
    ...rows.slice(1).map(line),
  ].join("\n");
}
