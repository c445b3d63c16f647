// Draws a frame: the rows with the ruler above them, and the minimap.

import { Colours } from "./colours";
import { clipped } from "./draw/clipped";
import { drawCounters } from "./draw/counters";
import { drawMinimap, type MinimapScene } from "./draw/minimap";
import { drawNames } from "./draw/names";
import { drawOverlay } from "./draw/overlay";
import { drawGround, drawHeaders, drawRuler } from "./draw/ruler";
import { Strips } from "./draw/strips";
import { type Measure, remembering } from "./labels";
import { type Placed, RULER_PX, type Scene } from "./scene";
import type { Elements } from "./surface";
import { readTheme } from "./theme";

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
  drawRows(frame: Omit<Scene, "context" | "colours">, lines: readonly Placed[], generation: number): void {
    const { context, colours, strips, measure } = this;
    const scene: Scene = { ...frame, context, colours };
    const { width, height, ratio, pinnedBottom } = scene;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawGround(scene);
    const pinned = lines.filter(({ line }) => line.isPinned);
    const others = lines.filter(({ line }) => !line.isPinned);
    strips.make(scene, lines, generation);
    const drawLines = (lines: readonly Placed[]) => {
      strips.draw(scene, lines);
      drawCounters(scene, lines);
      drawNames(scene, lines, measure);
    };
    clipped(context, pinnedBottom, height, width, () => {
      drawHeaders(scene, others);
      drawLines(others);
    });
    clipped(context, RULER_PX, pinnedBottom, width, () => drawLines(pinned));
    if (pinned.length > 0) {
      context.fillStyle = colours.theme.faint;
      context.fillRect(0, pinnedBottom - 1, width, 1);
    }
    drawRuler(scene, measure);
    drawOverlay(scene, lines);
  }

  drawMinimap(frame: Omit<MinimapScene, "context" | "width" | "height" | "theme">, ratio: number): void {
    const { mapContext: context, colours } = this;
    const { clientWidth: width, clientHeight: height } = this.elements.minimap;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawMinimap({ ...frame, context, width, height, theme: colours.theme });
  }
}
