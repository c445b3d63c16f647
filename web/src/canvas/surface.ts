// Where things are on the screen: how large the canvas is, which lines it shows, and how far they are scrolled.

import type { Layout } from "./layout";
import { type Placed, placed, RULER_PX } from "./scene";

/** How much of the height pinned lines take at most. */
const PINNED_PART = 0.4;

/** Room above and below a row that is scrolled to. */
const HEADROOM_PX = 60;

export interface Elements {
  /** Where rows are drawn; it fills the stage beside the labels. */
  readonly canvas: HTMLCanvasElement;
  readonly minimap: HTMLCanvasElement;
  /** What scrolls; the stage stays where it is while it does. */
  readonly scroller: HTMLElement;
  /** As high as what scrolls out of sight. */
  readonly spacer: HTMLElement;
}

export class Surface {
  layout: Layout = { pinned: [], pinnedHeight: 0, lines: [], height: 0 };
  /** In CSS pixels. */
  width = 1;
  height = 1;
  /** Pixels of the device per CSS pixel. */
  ratio = 1;
  private readonly observer: ResizeObserver;

  /** `onChange` is called when the size or how far it is scrolled has changed. */
  constructor(
    readonly elements: Elements,
    private readonly onChange: () => void,
  ) {
    this.observer = new ResizeObserver(() => this.measure());
    this.observer.observe(elements.canvas);
    this.observer.observe(elements.minimap);
    elements.scroller.addEventListener("scroll", onChange, { passive: true });
    this.measure();
  }

  dispose(): void {
    this.observer.disconnect();
    this.elements.scroller.removeEventListener("scroll", this.onChange);
  }

  setLayout(layout: Layout): void {
    this.layout = layout;
    this.layoutSpacer();
    this.onChange();
  }

  /** Takes the size that the elements have now. */
  private measure(): void {
    const { canvas, minimap } = this.elements;
    this.ratio = devicePixelRatio || 1;
    for (const each of [canvas, minimap]) {
      const width = Math.max(Math.round(each.clientWidth * this.ratio), 1);
      const height = Math.max(Math.round(each.clientHeight * this.ratio), 1);
      if (each.width !== width) each.width = width;
      if (each.height !== height) each.height = height;
    }
    this.width = Math.max(canvas.clientWidth, 1);
    this.height = Math.max(canvas.clientHeight, 1);
    this.layoutSpacer();
    this.onChange();
  }

  get scroll(): number {
    return this.elements.scroller.scrollTop;
  }

  /** The height of the pinned lines on the screen. */
  get pinnedShown(): number {
    return Math.min(this.layout.pinnedHeight, Math.floor((this.height - RULER_PX) * PINNED_PART));
  }

  /** Where pinned lines end and others begin. */
  get pinnedBottom(): number {
    return RULER_PX + this.pinnedShown;
  }

  /** Lines on the screen. */
  get lines(): readonly Placed[] {
    return placed(this.layout, this.height, this.scroll, this.pinnedShown);
  }

  /** The line at a height of the canvas; none on the ruler. */
  lineAt(y: number): Placed | null {
    if (y < RULER_PX) return null;
    // Pinned lines come first: they cover what scrolls below them.
    return this.lines.find(({ line, top }) => y >= top && y < top + line.height) ?? null;
  }

  /** Scrolls so that a row is seen, where there is a line for it. */
  reveal(row: number): void {
    if (this.layout.pinned.some((line) => line.row === row && line.kind !== "density")) return;
    const line = this.layout.lines.find((line) => line.row === row);
    if (!line) return;
    const { scroller } = this.elements;
    const room = this.height - this.pinnedBottom;
    if (line.y < scroller.scrollTop) scroller.scrollTop = Math.max(line.y - HEADROOM_PX, 0);
    else if (line.y + line.height > scroller.scrollTop + room) {
      scroller.scrollTop = line.y + line.height - room + HEADROOM_PX;
    }
    this.onChange();
  }

  /** Makes the spacer as high as what does not fit. */
  private layoutSpacer(): void {
    const hidden = this.layout.height - (this.height - this.pinnedBottom);
    this.elements.spacer.style.height = `${Math.max(hidden, 0)}px`;
  }
}
