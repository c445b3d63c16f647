import type { Pen } from "./pen";

/** Draws so that nothing above `top` or below `bottom` is touched. */
export function clipped(context: Pen, top: number, bottom: number, width: number, draw: () => void): void {
  context.save();
  context.beginPath();
  context.rect(0, top, width, Math.max(bottom - top, 0));
  context.clip();
  draw();
  context.restore();
}
