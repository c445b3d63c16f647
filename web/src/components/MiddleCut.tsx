/** Characters at the end that stay: names of kernels and stacks differ there as often as at their begin. */
const END = 14;
/** Shorter ones are cut at their end alone. */
const LEAST = 2 * END;

/** Where the end of a name begins that stays; null for one that is cut at its end alone. */
export function endOf(text: string): number | null {
  // The end of `<built-in method …>` is an address.
  if (text.length < LEAST || text.startsWith("<built-in ")) return null;
  const at = text.length - END;
  // Not between the halves of one character.
  return /[\udc00-\udfff]/.test(text.charAt(at)) ? at - 1 : at;
}

/** A name that is cut in its middle where there is no room for it; all of it is in the text. */
export function MiddleCut({ text }: { text: string }) {
  const at = endOf(text);
  if (at === null) return <>{text}</>;
  return (
    <span class="middle-cut">
      <span>{text.slice(0, at)}</span>
      <span>{text.slice(at)}</span>
    </span>
  );
}
