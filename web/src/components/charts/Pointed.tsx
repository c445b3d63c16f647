/** What a chart says of the place that is pointed at. What an element says on hover comes late, and not by touch or keyboard. */
export function Pointed({ words, hint }: { words: string | null; hint: string }) {
  return (
    <p class="dim pointed" aria-hidden="true">
      {words ?? hint}
    </p>
  );
}
