// JSON whose integers stay exact: those that a double cannot hold become BigInt, all others stay numbers.

const STRING_OR_NUMBER = /"(?:[^"\\]+|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const LONG_INTEGER = /^-?\d{16,}$/;

/** The value that `text` says. Integers beyond ±(2^53 − 1) are `bigint`. */
export function parseExact(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  // A mark that no text of a trace can know beforehand, so that none of them is taken for a number.
  const mark = `bigint-${crypto.randomUUID()}:`;
  const marked = text.replace(STRING_OR_NUMBER, (token) => {
    const isLong = LONG_INTEGER.test(token) && !Number.isSafeInteger(Number(token));
    return isLong ? `"${mark}${token}"` : token;
  });
  return JSON.parse(marked, (_key, value: unknown) =>
    typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  );
}
