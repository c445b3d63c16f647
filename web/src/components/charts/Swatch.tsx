import { partLook } from "../../classes";
import { fillOf } from "./Patterns";

/** How a part of a breakdown looks, beside its name. */
export function Swatch({ part }: { part: string }) {
  const { colour, texture } = partLook(part);
  return (
    <svg class="swatch" width="14" height="14" aria-hidden="true" focusable="false">
      <rect width="14" height="14" rx="2" fill={fillOf(colour, texture)} />
    </svg>
  );
}
