import { hatchOf } from "./Patterns";

/** In charts of a comparison the bars of the first run are filled, those of the second are outlines with stripes. */
export function SideKeys({ names }: { names: readonly [string, string] }) {
  return (
    <ul class="legend">
      <li>
        <Key side="a" /> before: {names[0]}
      </li>
      <li>
        <Key side="b" /> now: {names[1]}
      </li>
    </ul>
  );
}

function Key({ side }: { side: "a" | "b" }) {
  return (
    <svg class="swatch" width="14" height="14" aria-hidden="true" focusable="false">
      {side === "b" && <rect x="1" y="1" width="12" height="12" fill={hatchOf("rising")} />}
      <rect class={`side-${side}`} x="1" y="1" width="12" height="12" />
    </svg>
  );
}
