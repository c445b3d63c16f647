import type { Scene } from "../scene";

const CHIP_PX = 15;

/** A few words on a ground of their own, from `x` on, or up to it where there is no room to its right. */
export function chip(scene: Scene, words: string, x: number, top: number): void {
  const { context, width } = scene;
  const { theme } = scene.colours;
  context.font = theme.font;
  const wide = context.measureText(words).width + 8;
  const left = Math.max(0, x + wide > width ? x - wide - 16 : x);
  context.fillStyle = theme.accent;
  context.fillRect(left, top, wide, CHIP_PX);
  context.fillStyle = theme.ground;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillText(words, left + 4, top + CHIP_PX / 2 + 0.5);
}
