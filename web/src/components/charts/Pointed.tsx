import type { ReadonlySignal } from "@preact/signals";

interface Props {
  /** A signal where a chart has thousands of places: only this is drawn anew then. */
  readonly words: string | null | ReadonlySignal<string | null>;
  readonly hint: string;
}

/** What a chart says of the place that is pointed at. What an element says on hover comes late, and not by touch or keyboard. */
export function Pointed({ words, hint }: Props) {
  const said = typeof words === "object" ? words?.value : words;
  return (
    <p class="dim pointed" aria-hidden="true">
      {said ?? hint}
    </p>
  );
}
