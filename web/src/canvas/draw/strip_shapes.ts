// Rows of slices as shapes, for files that are drawn at any size: what a pixel of the screen shows, its neighbours that show
// the same in one shape.

import { paintRow, StripPainter } from "../paint";
import { type Placed, type Scene, samplesOf } from "../scene";
import { Scale } from "../view";
import type { Pen } from "./pen";
import { FOOT_PX, GAP_PX, HATCH_PX } from "./strips";

/** How much of the ground is seen in the stripes of a hatch. */
const STRIPE_GROUND = 0.3;

/** Draws rows of slices, of samples and of averages with shapes alone. */
export function drawStripShapes(scene: Scene, lines: readonly Placed[]): void {
  const { context, ratio } = scene;
  const pixels = Math.max(Math.round(scene.width * ratio), 1);
  const painter = new StripPainter(pixels);
  const scale = new Scale(scene.scale.view, pixels);
  const out = new Uint32Array(2 * pixels);
  const wide = scene.width / pixels;
  for (const { line, top } of lines) {
    const pieces = line.row === null || line.kind === "counter" ? undefined : scene.pieces.get(line.row);
    if (!pieces) continue;
    paintRow(painter, pieces, { kind: line.kind, samples: samplesOf(scene, line) }, scale, scene.colours);
    painter.finish(out, 0);
    const height = line.height - GAP_PX;
    const body = out.subarray(0, pixels);
    if (line.kind === "density") {
      fillRuns(context, body, wide, top, height);
      hatch(scene, top, height);
    } else {
      const foot = out.subarray(pixels);
      const tall = Math.min(FOOT_PX, height / 3);
      // Where the foot is as the rest of the row they are one shape: two have a seam between them.
      const isSame = (pixel: number, at: number) => pixel === (body[at] as number);
      fillRuns(
        context,
        body.map((pixel, at) => (isSame(foot[at] as number, at) ? pixel : 0)),
        wide,
        top,
        height,
      );
      const several = foot.map((pixel, at) => (isSame(pixel, at) ? 0 : pixel));
      fillRuns(
        context,
        body.map((pixel, at) => (several[at] === 0 ? 0 : pixel)),
        wide,
        top,
        height - tall,
      );
      fillRuns(context, several, wide, top + height - tall, tall);
    }
  }
  context.globalAlpha = 1;
}

/** Fills pixels that are `wide` each, as ImageData has them: one path for each colour. */
export function fillRuns(
  context: Pick<Pen, "fillStyle" | "globalAlpha" | "beginPath" | "rect" | "fill">,
  pixels: Uint32Array,
  wide: number,
  top: number,
  height: number,
): void {
  const runs = new Map<number, [from: number, to: number][]>();
  for (let from = 0; from < pixels.length; ) {
    const pixel = pixels[from] as number;
    let to = from + 1;
    while (to < pixels.length && pixels[to] === pixel) to++;
    if (pixel !== 0) {
      const known = runs.get(pixel);
      if (known) known.push([from, to]);
      else runs.set(pixel, [[from, to]]);
    }
    from = to;
  }
  for (const [pixel, places] of runs) {
    context.fillStyle = `rgb(${pixel & 255}, ${(pixel >>> 8) & 255}, ${(pixel >>> 16) & 255})`;
    context.globalAlpha = (pixel >>> 24) / 255;
    context.beginPath();
    for (const [from, to] of places) context.rect(from * wide, top, (to - from) * wide, height);
    context.fill();
  }
}

/** Slanting stripes that let the ground through. */
function hatch({ context, width, colours }: Scene, top: number, height: number): void {
  context.save();
  context.beginPath();
  context.rect(0, top, width, height);
  context.clip();
  context.beginPath();
  for (let x = -height; x < width; x += HATCH_PX) {
    context.moveTo(x, top + height);
    context.lineTo(x + height, top);
  }
  context.strokeStyle = colours.theme.ground;
  context.globalAlpha = STRIPE_GROUND;
  context.lineWidth = HATCH_PX / 4;
  context.stroke();
  context.restore();
}
