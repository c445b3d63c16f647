import { useEffect, useState } from "preact/hooks";
import { copyText } from "./clipboard";

/** Copies what `text` gives; says whether that worked. */
export function CopyButton({ text, children }: { text: () => string | Promise<string>; children: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(""), 2000);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => {
    try {
      await copyText(await text());
      setSaid("Copied");
    } catch {
      setSaid("Not copied");
    }
  };
  return (
    <button type="button" onClick={copy}>
      <span aria-live="polite">{said || children}</span>
    </button>
  );
}
