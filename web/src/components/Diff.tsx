/** A change line by line: what goes, and what comes in its place. */
export function Diff({ text }: { text: string | null }) {
  if (text === null) return null;
  return (
    <pre class="diff">
      {text.split("\n").map((line, at) => (
        <span key={`${at} ${line}`} class={sort(line)}>
          {`${line}\n`}
        </span>
      ))}
    </pre>
  );
}

const sort = (line: string): string => (line.startsWith("+") ? "comes" : line.startsWith("-") ? "goes" : "stays");
