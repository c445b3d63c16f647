// Keys that move the window while they are held.

import { heldOf } from "./keys";
import type { Timeline } from "./timeline";

/**
 * Listens for keys on `target` until the function that it returns is called. `onPress` is called with all others, and says
 * whether it took the key. `isElsewhere` says which keys are not meant for the timeline.
 */
export function followKeys(
  target: HTMLElement | Window,
  timeline: Timeline,
  onPress: (event: KeyboardEvent) => boolean,
  isElsewhere = (_event: KeyboardEvent) => false,
): () => void {
  const { motion } = timeline;
  const onDown = (event: Event) => {
    if (!(event instanceof KeyboardEvent) || isElsewhere(event)) return;
    const held = heldOf(event);
    if (held) {
      motion.press(held);
      timeline.redraw();
    } else if (!onPress(event)) return;
    event.preventDefault();
  };
  const onUp = (event: Event) => {
    const held =
      event instanceof KeyboardEvent && heldOf({ key: event.key, ctrlKey: false, metaKey: false, altKey: false });
    if (held) motion.release(held);
  };
  const stop = new AbortController();
  const options = { signal: stop.signal };
  target.addEventListener("keydown", onDown, options);
  target.addEventListener("keyup", onUp, options);
  target.addEventListener("blur", () => motion.releaseAll(), options);
  return () => stop.abort();
}
