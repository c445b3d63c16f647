// Texts of a trace as a person can read them: what steers a terminal or turns the direction of writing is written out, and
// what is far too long ends early.

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** `text` with characters that are not seen, but change what is, as `\x1b` and `\u202e`. Line breaks and tabs stay. */
export function printable(text: string): string {
  return text.search(UNSEEN) < 0 ? text : text.replace(UNSEEN, escaped);
}

function escaped(character: string): string {
  const code = character.charCodeAt(0).toString(16);
  return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
}

/** The first `most` characters of a text, with `…` behind them where it is longer; never half of one. */
export function clipped(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 2);
  return `${text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 2 : most - 1)}…`;
}
