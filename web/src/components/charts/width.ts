import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** The width of an element in pixels, followed as it changes. */
export function useWidth<T extends HTMLElement>(): [RefObject<T>, number] {
  const element = useRef<T>(null) as RefObject<T>;
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const known = element.current;
    if (!known) return;
    setWidth(known.clientWidth);
    const observer = new ResizeObserver(() => setWidth(known.clientWidth));
    observer.observe(known);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}
