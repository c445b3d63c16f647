// What a chart on a canvas takes from the page's styles: its colours and textures, and when they change.

import { useEffect, useRef } from "preact/hooks";
import type { PartLook } from "../../classes";
import { theme } from "../../state/theme";
import { STROKES } from "./Patterns";

/** A colour of the page's styles as a canvas understands it. */
export function colourOf(name: string): string {
  const probe = document.createElement("span");
  document.body.append(probe);
  probe.style.color = `var(${name})`;
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

/** Calls `paint` when the page's colours change: by its own choice, or the system's. */
export function useRepaint(paint: () => void): void {
  const latest = useRef(paint);
  latest.current = paint;
  useEffect(() => {
    const repaint = () => requestAnimationFrame(() => latest.current());
    const queries = ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"].map((text) => matchMedia(text));
    for (const query of queries) query.addEventListener("change", repaint);
    const unfollow = theme.subscribe(repaint);
    return () => {
      for (const query of queries) query.removeEventListener("change", repaint);
      unfollow();
    };
  }, []);
}

/**
 * The fill of a part for a canvas of `ratio` pixels per CSS pixel; `isTextured` gives it the texture that it has in the
 * legend.
 */
export function paintOf({ colour, texture }: PartLook, ratio: number, isTextured: boolean): CanvasPattern | string {
  const fill = colourOf(`--class-${colour}`);
  const tile = document.createElement("canvas");
  tile.width = tile.height = Math.round(8 * ratio);
  const context = tile.getContext("2d");
  if (!context || !isTextured || STROKES[texture] === "") return fill;
  context.scale(tile.width / 8, tile.height / 8);
  context.fillStyle = fill;
  context.fillRect(0, 0, 8, 8);
  // As `.texture` in charts.css.
  context.strokeStyle = colourOf("--page");
  [context.globalAlpha, context.lineWidth, context.lineCap] =
    texture === "dots" ? [0.8, 1.8, "round"] : [0.55, 1.2, "butt"];
  context.stroke(new Path2D(STROKES[texture]));
  return context.createPattern(tile, "repeat") ?? fill;
}
