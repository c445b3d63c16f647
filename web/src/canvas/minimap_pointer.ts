// The minimap: a click or a drag goes there.

import type { Timeline } from "./timeline";
import { Scale } from "./view";

/** Listens on the minimap until the function that it returns is called. */
export function followMinimap(canvas: HTMLCanvasElement, timeline: Timeline): () => void {
  const goTo = (event: PointerEvent) => {
    const box = canvas.getBoundingClientRect();
    const middle = new Scale(timeline.span, box.width).time(event.clientX - box.left);
    const { start_ns, end_ns } = timeline.motion.goal;
    const half = (end_ns - start_ns) / 2;
    timeline.go({ start_ns: middle - half, end_ns: middle + half }, true);
  };
  const onDown = (event: PointerEvent) => {
    canvas.setPointerCapture(event.pointerId);
    goTo(event);
  };
  const onMove = (event: PointerEvent) => {
    if (event.buttons & 1) goTo(event);
  };
  const stop = new AbortController();
  const { signal } = stop;
  canvas.addEventListener("pointerdown", onDown, { signal });
  canvas.addEventListener("pointermove", onMove, { signal });
  return () => stop.abort();
}
