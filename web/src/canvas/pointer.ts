// What a pointer and a wheel do on the canvas.
//
//   wheel           scrolls the rows         drag on rows    selects a range, and the rows that it goes over; its ends
//                                                            are edges of slices where these are near, but not with Alt
//   Shift + wheel   moves in time            drag on ruler   selects a range
//   Ctrl + wheel    zooms at the pointer     Shift + drag    moves in time; also with the middle button, or a finger
//   click           selects a slice          double-click    shows what is there as large as it can be

import type { Hit } from "./hit";
import { isMade } from "./item_loader";
import type { Line } from "./layout";
import { RULER_PX } from "./scene";
import type { Timeline } from "./timeline";
import { moved, type Scale, type Span } from "./view";

/** A pointer that moved less than this, in CSS pixels, has clicked. */
const CLICK_PX = 4;

export interface Hovered {
  readonly x: number;
  readonly y: number;
  readonly time_ns: number;
  readonly line: Line;
  readonly hit: Hit | null;
}

export interface PointerCallbacks {
  readonly onHover: (hovered: Hovered | null) => void;
  readonly onClick: (hit: Hit | null) => void;
  readonly onDoubleClick: (hit: Hit | null) => void;
  /** A range, while it is dragged and when it is done; `rows` are none for a range of everything. */
  readonly onRange: (range: Span, rows: readonly number[], isDone: boolean) => void;
}

interface Drag {
  readonly kind: "range" | "pan";
  readonly x: number;
  readonly y: number;
  readonly view: Span;
  readonly time_ns: number;
  hasMoved: boolean;
}

/** Listens on the canvas until the function that it returns is called. */
export function followPointer(canvas: HTMLCanvasElement, timeline: Timeline, callbacks: PointerCallbacks): () => void {
  let drag: Drag | null = null;

  const place = (event: MouseEvent) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  const onDown = (event: PointerEvent) => {
    if (event.button > 1) return;
    const { x, y } = place(event);
    const isPan = event.shiftKey || event.button === 1 || event.pointerType === "touch";
    drag = {
      kind: isPan ? "pan" : "range",
      x,
      y,
      view: timeline.view,
      time_ns: timeAt(timeline, event, x, y),
      hasMoved: false,
    };
    canvas.setPointerCapture(event.pointerId);
    if (event.button === 1) event.preventDefault();
  };

  const onMove = (event: PointerEvent) => {
    const { x, y } = place(event);
    timeline.motion.pointer_ns = timeline.scale.time(x);
    if (!drag) {
      const found = timeline.hitAt(x, y);
      callbacks.onHover(found && { x, y, time_ns: timeline.scale.time(x), line: found.line, hit: found.hit });
      return;
    }
    if (Math.hypot(x - drag.x, y - drag.y) >= CLICK_PX) drag.hasMoved = true;
    if (!drag.hasMoved) return;
    callbacks.onHover(null);
    if (drag.kind === "pan") timeline.go(moved(drag.view, (drag.x - x) * timeline.scale.ns_per_px), true);
    else callbacks.onRange(rangeTo(drag, timeAt(timeline, event, x, y)), rowsTo(drag, y), false);
  };

  const onUp = (event: PointerEvent) => {
    const { x, y } = place(event);
    const done = drag;
    drag = null;
    if (!done) return;
    if (!done.hasMoved) callbacks.onClick(timeline.hitAt(x, y)?.hit ?? null);
    else if (done.kind === "range")
      callbacks.onRange(rangeTo(done, timeAt(timeline, event, x, y)), rowsTo(done, y), true);
  };

  const rangeTo = (from: Drag, to: number): Span => {
    return { start_ns: Math.min(from.time_ns, to), end_ns: Math.max(from.time_ns, to) };
  };

  const rowsTo = (from: Drag, y: number): number[] => {
    if (from.y < RULER_PX) return [];
    const [top, bottom] = [Math.min(from.y, y), Math.max(from.y, y)];
    const over = timeline.lines.filter((each) => each.top < bottom && each.top + each.line.height > top);
    return [
      ...new Set(
        over.flatMap(({ line }) =>
          line.row === null || line.kind === "counter" || isMade(line.row) ? [] : [line.row],
        ),
      ),
    ];
  };

  const onCancel = () => {
    drag = null;
  };
  const onLeave = () => {
    callbacks.onHover(null);
    timeline.motion.pointer_ns = null;
  };
  const onDouble = (event: MouseEvent) => {
    const { x, y } = place(event);
    callbacks.onDoubleClick(timeline.hitAt(x, y)?.hit ?? null);
  };

  const onWheel = (event: WheelEvent) => {
    const { x } = place(event);
    // Lines and pages in pixels, about.
    const unit = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 400 : 1;
    const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      timeline.motion.zoom(Math.exp(-dy * 0.0025), timeline.scale.time(x));
    } else if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) {
      event.preventDefault();
      const by = (dx || dy) * timeline.scale.ns_per_px;
      timeline.motion.to(moved(timeline.motion.goal, by));
    } else return;
    timeline.redraw();
  };

  const stop = new AbortController();
  const { signal } = stop;
  canvas.addEventListener("pointerdown", onDown, { signal });
  canvas.addEventListener("pointermove", onMove, { signal });
  canvas.addEventListener("pointerup", onUp, { signal });
  canvas.addEventListener("pointercancel", onCancel, { signal });
  canvas.addEventListener("pointerleave", onLeave, { signal });
  canvas.addEventListener("dblclick", onDouble, { signal });
  canvas.addEventListener("wheel", onWheel, { signal, passive: false });
  return () => stop.abort();
}

/** Pixels from which on an edge draws the end of a range to itself. */
const NEAR_PX = 5;

/** The time at a place: that of the edge of a slice, where one is near. */
function timeAt(timeline: Timeline, event: PointerEvent, x: number, y: number): number {
  if (event.altKey || y < RULER_PX) return timeline.scale.time(x);
  const found = [x - NEAR_PX, x, x + NEAR_PX].flatMap((x) => timeline.hitAt(x, y)?.hit ?? []);
  return nearestEdge(found, timeline.scale, x) ?? timeline.scale.time(x);
}

/** The begin or end of a slice that is nearest to `x`, within reach. What stands for several has no edges of its own. */
export function nearestEdge(found: readonly Hit[], scale: Scale, x: number): number | null {
  const edges = found.filter((hit) => !hit.isSeveral).flatMap((hit) => [hit.start_ns, hit.start_ns + hit.dur_ns]);
  const away = (ns: number) => Math.abs(scale.x(ns) - x);
  const nearest = edges.reduce<number | null>((best, ns) => (best === null || away(ns) < away(best) ? ns : best), null);
  return nearest !== null && away(nearest) <= NEAR_PX ? nearest : null;
}
