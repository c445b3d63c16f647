// Draws a frame: the rows with the ruler above them, and the minimap.

import { Colours } from "./colours";
import { drawFrame } from "./draw/frame";
import { drawMinimap, type MinimapScene } from "./draw/minimap";
import type { Pen } from "./draw/pen";
import { drawStripShapes } from "./draw/strip_shapes";
import { Strips } from "./draw/strips";
import { type Measure, remembering } from "./labels";
import type { Placed, Scene } from "./scene";
import type { Elements } from "./surface";
import { readTheme } from "./theme";

/** What a frame shows, apart from where it is drawn. */
export type Frame = Omit<Scene, "context" | "colours">;

export class Renderer {
  private readonly context: CanvasRenderingContext2D;
  private readonly mapContext: CanvasRenderingContext2D;
  private readonly measure: Measure;
  private readonly strips = new Strips();
  private colours: Colours;

  constructor(private readonly elements: Elements) {
    const context = elements.canvas.getContext("2d", { alpha: false });
    const mapContext = elements.minimap.getContext("2d", { alpha: false });
    if (!context || !mapContext) throw new Error("this browser has no canvas");
    this.context = context;
    this.mapContext = mapContext;
    this.measure = remembering((text) => context.measureText(text).width);
    this.colours = new Colours(readTheme(elements.scroller));
  }

  /** What is searched stands out. */
  setSearch(text: string, theme = this.colours.theme): void {
    this.colours = new Colours(theme, text);
    this.strips.forget();
  }

  /** Reads the page's colours anew. */
  setTheme(search: string): void {
    this.setSearch(search, readTheme(this.elements.scroller));
  }

  /** Draws the lines that are on the screen. `generation` changes whenever tiles have come. */
  drawRows(frame: Frame, lines: readonly Placed[], generation: number): void {
    const { context, colours, strips } = this;
    const scene: Scene = { ...frame, context, colours };
    context.setTransform(scene.ratio, 0, 0, scene.ratio, 0, 0);
    strips.make(scene, lines, generation);
    drawFrame(scene, lines, this.measure, (lines) => strips.draw(context, scene, lines));
  }

  /** Draws the same with another pen, in shapes and texts alone. */
  drawWith(pen: Pen, frame: Frame, lines: readonly Placed[]): void {
    const scene: Scene = { ...frame, context: pen, colours: this.colours };
    const measure = (text: string) => pen.measureText(text).width;
    drawFrame(scene, lines, measure, (lines) => drawStripShapes(scene, lines));
  }

  drawMinimap(frame: Omit<MinimapScene, "context" | "width" | "height" | "theme">, ratio: number): void {
    const { mapContext: context, colours } = this;
    const { clientWidth: width, clientHeight: height } = this.elements.minimap;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawMinimap({ ...frame, context, width, height, theme: colours.theme });
  }
}
