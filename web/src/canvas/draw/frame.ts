// A frame from back to front: the same on the screen and in a file.

import type { Measure } from "../labels";
import { type Placed, RULER_PX, type Scene } from "../scene";
import { clipped } from "./clipped";
import { drawCounters } from "./counters";
import { drawNames } from "./names";
import { drawOverlay } from "./overlay";
import { drawGround, drawHeaders, drawRuler } from "./ruler";

/** Draws the lines that are on the screen; `drawStrips` draws those of slices. */
export function drawFrame(
  scene: Scene,
  lines: readonly Placed[],
  measure: Measure,
  drawStrips: (lines: readonly Placed[]) => void,
): void {
  const { context, width, height, pinnedBottom } = scene;
  drawGround(scene);
  const pinned = lines.filter(({ line }) => line.isPinned);
  const others = lines.filter(({ line }) => !line.isPinned);
  const drawLines = (lines: readonly Placed[]) => {
    drawStrips(lines);
    drawCounters(scene, lines);
    drawNames(scene, lines, measure);
  };
  clipped(context, pinnedBottom, height, width, () => {
    drawHeaders(scene, others);
    drawLines(others);
  });
  clipped(context, RULER_PX, pinnedBottom, width, () => drawLines(pinned));
  if (pinned.length > 0) {
    context.fillStyle = scene.colours.theme.faint;
    context.fillRect(0, pinnedBottom - 1, width, 1);
  }
  drawRuler(scene, measure);
  drawOverlay(scene, lines);
}
