import { type ReadonlySignal, type Signal, useSignal, useSignalEffect } from "@preact/signals";
import { selection } from "../../state/route";

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

/** The words of the place that is pointed at: of another rank, step or span they would be wrong, and are forgotten. */
export function usePointed(): Signal<string | null> {
  const pointed = useSignal<string | null>(null);
  useSignalEffect(() => {
    void selection.value;
    pointed.value = null;
  });
  return pointed;
}
