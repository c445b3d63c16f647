// Where the panel of the timeline is, how large, and whether it is open. A habit of the person, not a part of what is shown:
// so it is not in the address.

import { effect, signal } from "@preact/signals";
import { remember, remembered } from "../../state/remembered";

export interface PanelPlace {
  readonly isRight: boolean;
  readonly isShut: boolean;
  /** Its height where it is below, and its width where it is on the right, in pixels. */
  readonly below: number;
  readonly right: number;
}

const KEY = "stepscope-timeline-panel";
/** Pixels that it has at least. */
export const LEAST = 80;
/** In a low window it leaves the rows most of the room. */
const BELOW = Math.max(Math.min(240, Math.round((globalThis.innerHeight ?? 1000) * 0.24)), LEAST);
const UNASKED: PanelPlace = { isRight: false, isShut: false, below: BELOW, right: 420 };

export const place = signal<PanelPlace>(readPlace(remembered(KEY)));

effect(() => remember(KEY, JSON.stringify(place.value)));

/** The size of the panel in the direction in which it is dragged. */
export const sizeOf = ({ isRight, below, right }: PanelPlace): number => (isRight ? right : below);

/** The panel with another size; of the room that there is, the canvas keeps a part. */
export function resized(from: PanelPlace, size: number, room: number): PanelPlace {
  const fits = Math.round(Math.max(LEAST, Math.min(size, room * 0.8)));
  return from.isRight ? { ...from, right: fits } : { ...from, below: fits };
}

/** What was kept, as far as it makes sense. */
export function readPlace(text: string | null): PanelPlace {
  let kept: unknown;
  try {
    kept = JSON.parse(text ?? "null");
  } catch {
    return UNASKED;
  }
  if (typeof kept !== "object" || kept === null) return UNASKED;
  const known = kept as Record<string, unknown>;
  const size = (name: "below" | "right") => {
    const value = known[name];
    return typeof value === "number" && Number.isFinite(value) && value >= LEAST ? value : UNASKED[name];
  };
  return { isRight: known.isRight === true, isShut: known.isShut === true, below: size("below"), right: size("right") };
}
