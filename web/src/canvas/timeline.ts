// The timeline on a canvas: what is shown, and when it is drawn. It knows no framework; the page says what to show and is
// called back.

import { type DataSource, TimelineData } from "./data";
import type { Pen } from "./draw/pen";
import { type Hit, hitIn } from "./hit";
import type { Item } from "./item_loader";
import type { Layout, Line } from "./layout";
import type { CounterPart } from "./model";
import { Motion } from "./motion";
import { type Frame, Renderer } from "./renderer";
import type { Emphasis, Placed, StepBand } from "./scene";
import { type Elements, Surface } from "./surface";
import { levelOf, Scale, type Span } from "./view";

export interface Callbacks {
  /** Lines on the screen, whenever they are others or elsewhere. */
  readonly onLines: (lines: readonly Placed[], pinnedBottom: number) => void;
  /** The window, whenever it has come to rest. */
  readonly onRest: (view: Span) => void;
  /** The window, in every frame in which it is another one. */
  readonly onView?: (view: Span) => void;
  /** The window begins to move: what was below the pointer is no longer there. */
  readonly onMoving: () => void;
  readonly onError: (error: unknown) => void;
  /** Whether something that is shown is still on its way. */
  readonly onLoading: (isLoading: boolean) => void;
}

const NOTHING: Emphasis = { selected: null, hovered: null, range: null, marks: [], arrows: [], joined: null };

export class Timeline {
  readonly motion: Motion;
  private readonly surface: Surface;
  private readonly data: TimelineData;
  private readonly renderer: Renderer;
  private emphasis = NOTHING;
  private steps: readonly StepBand[] = [];
  private hits: readonly number[] = [];
  private busy: readonly number[] = [];
  private frame = 0;
  private before_ms = 0;
  /** The lines that `onLines` was called with last. */
  private notified = "";
  /** What `onLoading` was called with last. */
  private isLoading: boolean | null = null;
  private rested: Span | null = null;
  private drawn: Span | null = null;
  /** The moment that the ruler counts from. */
  private zero_ns = 0;
  /** How long drawing took, in ms, for the latest frames: for measurements. */
  readonly frames_ms: number[] = [];

  constructor(
    elements: Elements,
    source: DataSource,
    private readonly callbacks: Callbacks,
    readonly span: Span,
    view: Span,
  ) {
    const wantsLess = matchMedia("(prefers-reduced-motion: reduce)");
    this.motion = new Motion(view, span, () => wantsLess.matches);
    this.motion.to(view, true);
    this.renderer = new Renderer(elements);
    this.data = new TimelineData(source, span.end_ns, this.redraw, callbacks.onError);
    this.surface = new Surface(elements, this.redraw);
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    this.frame = -1;
    this.surface.dispose();
    this.data.dispose();
  }

  setLayout(layout: Layout): void {
    this.notified = "";
    this.surface.setLayout(layout);
  }

  setEmphasis(emphasis: Partial<Emphasis>): void {
    this.emphasis = { ...this.emphasis, ...emphasis };
    this.redraw();
  }

  setSteps(steps: readonly StepBand[]): void {
    this.steps = steps;
    this.redraw();
  }

  /** Counts time from a moment of the run on, instead of its start. */
  setZero(zero_ns: number): void {
    this.zero_ns = zero_ns;
    this.redraw();
  }

  /** How busy the run is in equal parts of its time, for the minimap. */
  setBusy(busy: readonly number[]): void {
    this.busy = busy;
    this.redraw();
  }

  /** What is searched stands out, and where it hits is on the minimap. */
  setSearch(text: string, hits: readonly number[]): void {
    this.hits = hits;
    this.renderer.setSearch(text);
    this.redraw();
  }

  /** Reads the page's colours anew. */
  setTheme(search: string): void {
    this.renderer.setTheme(search);
    this.redraw();
  }

  /** Goes to a window; smoothly, unless it follows a finger. */
  go(view: Span, isAtOnce = false): void {
    this.motion.to(view, isAtOnce);
    this.redraw();
  }

  get view(): Span {
    return this.motion.view;
  }

  get scale(): Scale {
    return new Scale(this.motion.view, this.surface.width);
  }

  /** Lines on the screen. */
  get lines(): readonly Placed[] {
    return this.surface.lines;
  }

  /** What is at a place of the canvas; none on the ruler. */
  hitAt(x: number, y: number): { line: Line; hit: Hit | null } | null {
    const line = this.surface.lineAt(y)?.line;
    if (!line) return null;
    if (line.row === null || line.kind === "counter") return { line, hit: null };
    const pieces = this.data.pieces(line.row, this.motion.view, this.level);
    return { line, hit: hitIn(line.row, pieces, this.scale, x) };
  }

  /** What was hit on a row that is made of results. */
  item(hit: Hit): Item | null {
    return this.data.item(hit);
  }

  /** The values of a counter, as far as they are here. */
  counter(row: number): CounterPart | undefined {
    return this.data.counters.get(row);
  }

  /** Scrolls so that a row is seen, where there is a line for it. */
  reveal(row: number): void {
    this.surface.reveal(row);
  }

  /** Draws a frame soon, however often it is called. */
  readonly redraw = (): void => {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame((now) => this.draw(now));
  };

  /** The level at which a bin is about a pixel of the device wide. */
  private get level(): number {
    return levelOf(this.scale.ns_per_px / this.surface.ratio);
  }

  private draw(now: number): void {
    if (this.frame === -1) return;
    this.frame = 0;
    const isMoving = this.motion.tick(this.before_ms > 0 ? Math.min(now - this.before_ms, 100) : 16);
    this.before_ms = isMoving ? now : 0;
    if (this.drawn !== this.motion.view) this.callbacks.onView?.(this.motion.view);
    this.drawn = this.motion.view;
    const begin = performance.now();
    this.paint();
    this.frames_ms.push(performance.now() - begin);
    if (this.frames_ms.length > 2000) this.frames_ms.splice(0, 1000);
    if (isMoving && this.rested) this.callbacks.onMoving();
    if (isMoving) {
      this.rested = null;
      this.redraw();
    } else if (this.rested !== this.motion.view) {
      this.rested = this.motion.view;
      this.callbacks.onRest(this.motion.view);
    }
  }

  private paint(): void {
    const { data, emphasis, level, lines, motion, steps } = this;
    const rows = drawnRows(lines);
    const { ratio } = this.surface;
    this.renderer.drawRows(this.frameOf(lines), lines, data.generation);
    const { span, hits, busy } = this;
    const { marks, range } = emphasis;
    this.renderer.drawMinimap({ span, view: motion.view, steps, marks, range, hits, busy }, ratio);
    this.request(lines, rows, level);
    this.notifyLines(lines);
  }

  private frameOf(lines: readonly Placed[]): Frame {
    const { data, emphasis, level, motion, scale, steps, zero_ns } = this;
    const { width, height, ratio, pinnedBottom } = this.surface;
    const rows = drawnRows(lines);
    const pieces = new Map(rows.map((row) => [row, data.pieces(row, motion.view, level)]));
    const { counters } = data;
    return { width, height, ratio, scale, level, pinnedBottom, pieces, counters, steps, zero_ns, emphasis };
  }

  /** Draws what is on the screen with another pen. */
  drawWith(pen: Pen): void {
    const { lines } = this;
    this.renderer.drawWith(pen, this.frameOf(lines), lines);
  }

  private request(lines: readonly Placed[], rows: readonly number[], level: number): void {
    const { view } = this.motion;
    if (this.data.requestTiles(rows, view, level)) {
      const { isLoading } = this.data;
      if (isLoading !== this.isLoading) this.callbacks.onLoading(isLoading);
      this.isLoading = isLoading;
    }
    const counters = rowsOf(lines, (line) => line.kind === "counter");
    this.data.requestCounters(counters, view, level);
  }

  private notifyLines(lines: readonly Placed[]): void {
    const { scroll, pinnedBottom, height } = this.surface;
    const first = lines.find(({ line }) => !line.isPinned)?.line.key ?? "";
    const key = `${first} ${scroll} ${lines.length} ${pinnedBottom} ${height}`;
    if (key === this.notified) return;
    this.notified = key;
    this.callbacks.onLines(lines, pinnedBottom);
  }
}

/** Rows that are drawn on such lines, each once. */
function rowsOf(lines: readonly Placed[], isWanted: (line: Line) => boolean): number[] {
  return [...new Set(lines.flatMap(({ line }) => (line.row !== null && isWanted(line) ? [line.row] : [])))];
}

/** Rows that have tiles or items: also the samples of frames, which are marked on these. */
function drawnRows(lines: readonly Placed[]): number[] {
  const samples = lines.flatMap(({ line }) => line.samples ?? []);
  return [...new Set([...rowsOf(lines, ({ kind }) => kind !== "counter"), ...samples])];
}

/** Rows of slices and of samples on the screen: for the list beside the canvas. */
export const sliceRows = (lines: readonly Placed[]): number[] =>
  rowsOf(lines, ({ kind }) => kind === "slices" || kind === "samples");
