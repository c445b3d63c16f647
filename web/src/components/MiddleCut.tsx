/** Characters at the end that stay: names of kernels and stacks differ there as often as at their begin. */
const END = 14;
/** Shorter ones are cut at their end alone. */
const LEAST = 2 * END;

/** A name that is cut in its middle where there is no room for it; all of it is in the text. */
export function MiddleCut({ text }: { text: string }) {
  // The end of a template is alike in all of its kernels, and that of `<built-in method …>` an address.
  if (text.length < LEAST || text.endsWith(">")) return <>{text}</>;
  const at = text.length - END;
  // Not between the halves of one character.
  const isHalf = /[\udc00-\udfff]/.test(text.charAt(at));
  const cut = isHalf ? at - 1 : at;
  return (
    <span class="middle-cut">
      <span>{text.slice(0, cut)}</span>
      <span>{text.slice(cut)}</span>
    </span>
  );
}
