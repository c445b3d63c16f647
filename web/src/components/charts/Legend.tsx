import { partLook } from "../../classes";
import { Swatch } from "./Swatch";

/** What the colours and textures of a chart's parts mean. */
export function Legend({ parts }: { parts: readonly string[] }) {
  return (
    <ul class="legend">
      {parts.map((part) => (
        <li key={part}>
          <Swatch part={part} /> {partLook(part).words}
        </li>
      ))}
    </ul>
  );
}
