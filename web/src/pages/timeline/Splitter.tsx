import { useRef } from "preact/hooks";
import { LEAST, place, resized, sizeOf } from "./panel_place";

/** Pixels by which a key moves it. */
const STEP = 24;

/** Between the canvas and the panel: dragging it, or the arrow keys, make the panel larger or smaller. */
export function Splitter() {
  const element = useRef<HTMLDivElement>(null);
  const { isRight } = place.value;
  const room = () => {
    const around = element.current?.parentElement;
    return (isRight ? around?.clientWidth : around?.clientHeight) ?? 0;
  };
  const onPointerDown = (event: PointerEvent) => {
    const line = element.current;
    if (!line) return;
    event.preventDefault();
    line.setPointerCapture(event.pointerId);
    const [from, at] = [sizeOf(place.value), isRight ? event.clientX : event.clientY];
    const move = (event: PointerEvent) => {
      place.value = resized(place.value, from + at - (isRight ? event.clientX : event.clientY), room());
    };
    const end = () => {
      line.removeEventListener("pointermove", move);
      line.removeEventListener("pointerup", end);
      line.removeEventListener("pointercancel", end);
    };
    line.addEventListener("pointermove", move);
    line.addEventListener("pointerup", end);
    line.addEventListener("pointercancel", end);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const larger = isRight ? "ArrowLeft" : "ArrowUp";
    const smaller = isRight ? "ArrowRight" : "ArrowDown";
    const by = event.key === larger ? STEP : event.key === smaller ? -STEP : 0;
    if (by === 0) return;
    event.preventDefault();
    event.stopPropagation();
    place.value = resized(place.value, sizeOf(place.value) + by, room());
  };
  return (
    <div
      ref={element}
      class="timeline-splitter"
      role="separator"
      tabIndex={0}
      aria-label="Size of the details"
      aria-orientation={isRight ? "vertical" : "horizontal"}
      aria-valuenow={sizeOf(place.value)}
      aria-valuemin={LEAST}
      aria-controls="timeline-panel"
      onPointerDown={onPointerDown}
      onKeyDown={onKeyDown}
    />
  );
}
