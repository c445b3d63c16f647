// Rows of slices: a line of pixels each, made once for what does not change, and drawn as high as the row is. Rows of
// averages are a few lines with a hatch in them, drawn one below the other.

import { paintRow, StripPainter } from "../paint";
import { type Placed, type Scene, samplesOf } from "../scene";
import { Scale } from "../view";

/** Room between rows, in CSS pixels. */
export const GAP_PX = 1;

/** The part of a row in which it is told that a pixel stands for several slices. */
export const FOOT_PX = 3;

/** From one stripe of a hatch to the next, in CSS pixels. */
export const HATCH_PX = 6;

/** Draws rows of slices; keeps what it can for the next frame. */
export class Strips {
  private readonly canvas = document.createElement("canvas");
  private image: ImageData | null = null;
  private painter: StripPainter | null = null;
  private made = "";
  /** How many lines a hatch has. */
  private period = 2;
  /** Where the lines of a row are. */
  private readonly places = new Map<number, { readonly at: number; readonly isAverage: boolean }>();

  /** Makes the lines of pixels, unless they are there. `generation` changes whenever tiles have come. */
  make(scene: Scene, lines: readonly Placed[], generation: number): void {
    const width = Math.max(Math.round(scene.width * scene.ratio), 1);
    const { start_ns, end_ns } = scene.scale.view;
    const rows = [...scene.pieces];
    const key = `${width} ${scene.ratio} ${start_ns} ${end_ns} ${generation} ${[...scene.pieces.keys()].join()}`;
    if (rows.length === 0 || key === this.made) return;
    this.made = key;
    this.places.clear();
    this.period = Math.max(Math.round(HATCH_PX * scene.ratio), 2);
    const known = new Map(lines.map(({ line }) => [line.row, line]));
    const { painter, image, context } = this.room(width, rows.length * this.period);
    const out = new Uint32Array(image.data.buffer);
    const scale = new Scale(scene.scale.view, width);
    let at = 0;
    for (const [row, pieces] of rows) {
      const line = known.get(row);
      if (!line) continue;
      paintRow(painter, pieces, { kind: line.kind, samples: samplesOf(scene, line) }, scale, scene.colours);
      const isAverage = line.kind === "density";
      if (isAverage) painter.finishHatched(out, at * width, this.period);
      else painter.finish(out, at * width);
      this.places.set(row, { at, isAverage });
      at += isAverage ? this.period : 2;
    }
    context.putImageData(image, 0, 0, 0, 0, width, at);
  }

  /** Draws rows that were made. */
  draw(context: CanvasRenderingContext2D, scene: Scene, lines: readonly Placed[]): void {
    const { width } = scene;
    context.imageSmoothingEnabled = false;
    for (const { line, top } of lines) {
      const place = line.row === null || line.kind === "counter" ? undefined : this.places.get(line.row);
      if (!place) continue;
      const height = line.height - GAP_PX;
      const part = (from: number, count: number, y: number, tall: number) =>
        context.drawImage(this.canvas, 0, from, this.canvas.width, count, 0, top + y, width, tall);
      if (!place.isAverage) {
        const foot = Math.min(FOOT_PX, height / 3);
        part(place.at, 1, 0, height - foot);
        part(place.at + 1, 1, height - foot, foot);
        continue;
      }
      const pixels = Math.round(height * scene.ratio);
      for (let y = 0; y < pixels; y += this.period) {
        const count = Math.min(this.period, pixels - y);
        part(place.at, count, y / scene.ratio, count / scene.ratio);
      }
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
