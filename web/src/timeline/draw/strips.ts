// Rows of slices: a line of pixels each, made once for what does not change, and drawn as high as the row is.

import { StripPainter } from "../paint";
import type { Placed, Scene } from "../scene";
import { Scale } from "../view";

/** Room between rows, in CSS pixels. */
const GAP_PX = 1;

/** The part of a row in which it is told that a pixel stands for several slices. */
const FOOT_PX = 3;

/** Draws rows of slices; keeps what it can for the next frame. */
export class Strips {
  private readonly canvas = document.createElement("canvas");
  private image: ImageData | null = null;
  private painter: StripPainter | null = null;
  private made = "";
  /** Where the lines of a row are. */
  private readonly places = new Map<number, number>();

  /** Makes the lines of pixels, unless they are there. `generation` changes whenever tiles have come. */
  make(scene: Scene, rows: readonly number[], generation: number): void {
    const width = Math.max(Math.round(scene.width * scene.ratio), 1);
    const { start_ns, end_ns } = scene.scale.view;
    const key = `${width} ${start_ns} ${end_ns} ${generation} ${rows.join()}`;
    if (rows.length === 0 || key === this.made) return;
    this.made = key;
    this.places.clear();
    const { painter, image, context } = this.room(width, rows.length * 2);
    const out = new Uint32Array(image.data.buffer);
    const scale = new Scale(scene.scale.view, width);
    rows.forEach((row, nth) => {
      painter.begin();
      for (const piece of scene.pieces.get(row) ?? []) {
        painter.add(piece, scale, scene.colours);
      }
      painter.finish(out, nth * 2 * width);
      this.places.set(row, nth * 2);
    });
    context.putImageData(image, 0, 0, 0, 0, width, rows.length * 2);
  }

  /** Draws rows that were made. */
  draw(scene: Scene, lines: readonly Placed[]): void {
    const { context, width } = scene;
    context.imageSmoothingEnabled = false;
    for (const { line, top } of lines) {
      const at = line.row === null || line.kind === "counter" ? undefined : this.places.get(line.row);
      if (at === undefined) continue;
      const height = line.height - GAP_PX;
      const foot = Math.min(FOOT_PX, height / 3);
      context.drawImage(this.canvas, 0, at, this.canvas.width, 1, 0, top, width, height - foot);
      context.drawImage(this.canvas, 0, at + 1, this.canvas.width, 1, 0, top + height - foot, width, foot);
    }
  }

  /** Has everything made anew, for other colours. */
  forget(): void {
    this.made = "";
  }

  private room(width: number, height: number) {
    if (this.image?.width !== width || this.image.height < height) {
      // A few rows more, so that scrolling does not make room again and again.
      this.image = new ImageData(width, Math.ceil(height / 32) * 32);
      this.canvas.width = width;
      this.canvas.height = this.image.height;
      this.painter = new StripPainter(width);
    }
    const context = this.canvas.getContext("2d");
    if (!this.painter || !context) throw new Error("this browser has no canvas");
    return { painter: this.painter, image: this.image, context };
  }
}
