import { wordsOf } from "./vocabulary";

/** Sentences in which what stands between backquotes is code, or a name for which pages have words. */
export function Words({ text }: { text: string }) {
  return (
    <>
      {text.split("`").map((part, at) => {
        if (at % 2 === 0) return part;
        const words = wordsOf(part);
        return words === null ? <code key={at}>{part}</code> : <i key={at}>{words}</i>;
      })}
    </>
  );
}
