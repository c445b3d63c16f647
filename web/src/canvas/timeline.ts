// The timeline on a canvas: what is shown, what is asked for, and when it is drawn. It knows no framework; the page
// tells it what to show and hears what a person does.

import { Colours, type Theme } from "./colours";
import { CounterLoader, type FetchCounters } from "./counter_loader";
import { clipped } from "./draw/clipped";
import { drawCounters } from "./draw/counters";
import { drawMinimap } from "./draw/minimap";
import { drawNames } from "./draw/names";
import { drawOverlay } from "./draw/overlay";
import { drawGround, drawHeaders, drawRuler } from "./draw/ruler";
import { Strips } from "./draw/strips";
import { type Hit, hitIn } from "./hit";
import { type Measure, remembering } from "./labels";
import type { Layout, Line } from "./layout";
import { Motion } from "./motion";
import { type Emphasis, type Placed, piecesOfRow, placed, RULER_PX, type Scene, type StepBand } from "./scene";
import { readTheme } from "./theme";
import { type FetchTiles, TileLoader } from "./tile_loader";
import { TileStore } from "./tile_store";
import { levelOf, Scale, type Span, tilesOf } from "./view";

/** Bytes of tiles that are kept. */
const STORE_BYTES = 192 * 1024 * 1024;

/** How much of the height pinned lines take at most. */
const PINNED_PART = 0.4;

/** Room above and below a row that is scrolled to. */
const HEADROOM_PX = 60;

export interface Parts {
  /** Where rows are drawn; it fills the stage beside the labels. */
  readonly canvas: HTMLCanvasElement;
  readonly minimap: HTMLCanvasElement;
  /** What scrolls; the stage stays where it is while it does. */
  readonly scroller: HTMLElement;
  /** As high as what scrolls out of sight. */
  readonly spacer: HTMLElement;
}

export interface Asking {
  readonly fetchTiles: FetchTiles;
  readonly fetchCounters: FetchCounters;
}

/** What the page hears. */
export interface Hearing {
  /** Lines on the screen, whenever they are others or elsewhere. */
  readonly onLines: (lines: readonly Placed[], pinnedBottom: number) => void;
  /** The window, whenever it has come to rest. */
  readonly onRest: (view: Span) => void;
  /** The window, in every frame in which it is another one. */
  readonly onView?: (view: Span) => void;
  /** The window begins to move: what was below the pointer is no longer there. */
  readonly onMoving: () => void;
  readonly onTrouble: (error: unknown) => void;
  /** Whether something that is shown is still on its way. */
  readonly onBehind: (isBehind: boolean) => void;
}

const NOTHING: Emphasis = { selected: null, hovered: null, range: null, marks: [], arrows: [] };

export class Timeline {
  readonly motion: Motion;
  private readonly store = new TileStore(STORE_BYTES);
  private readonly loader: TileLoader;
  private readonly counters: CounterLoader;
  private readonly strips = new Strips();
  private readonly context: CanvasRenderingContext2D;
  private readonly mapContext: CanvasRenderingContext2D;
  private readonly observer: ResizeObserver;
  private readonly measure: Measure;
  private theme: Theme;
  private colours: Colours;
  private layout: Layout = { pinned: [], pinnedHeight: 0, lines: [], height: 0 };
  private emphasis = NOTHING;
  private steps: readonly StepBand[] = [];
  private hits: readonly number[] = [];
  private busy: readonly number[] = [];
  private width = 1;
  private height = 1;
  private ratio = 1;
  private generation = 0;
  private frame = 0;
  private before_ms = 0;
  private told = "";
  private asked = "";
  private isBehind = false;
  private rested: Span | null = null;
  private drawn: Span | null = null;
  /** The moment that the ruler counts from. */
  private zero_ns = 0;
  /** How long drawing took, in ms, for the latest frames: for measurements. */
  readonly frames_ms: number[] = [];

  constructor(
    private readonly parts: Parts,
    asking: Asking,
    private readonly hearing: Hearing,
    readonly span: Span,
    view: Span,
  ) {
    const context = parts.canvas.getContext("2d", { alpha: false });
    const mapContext = parts.minimap.getContext("2d", { alpha: false });
    if (!context || !mapContext) throw new Error("this browser has no canvas");
    this.context = context;
    this.mapContext = mapContext;
    this.theme = readTheme(parts.scroller);
    this.colours = new Colours(this.theme);
    this.measure = remembering((text) => context.measureText(text).width);
    const wantsLess = matchMedia("(prefers-reduced-motion: reduce)");
    this.motion = new Motion(view, span, () => wantsLess.matches);
    this.motion.to(view, true);
    const arrived = () => {
      this.generation++;
      this.redraw();
    };
    this.loader = new TileLoader(this.store, asking.fetchTiles, arrived, hearing.onTrouble);
    this.counters = new CounterLoader(asking.fetchCounters, arrived, hearing.onTrouble);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(parts.canvas);
    this.observer.observe(parts.minimap);
    parts.scroller.addEventListener("scroll", this.redraw, { passive: true });
    this.resize();
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    this.frame = -1;
    this.observer.disconnect();
    this.parts.scroller.removeEventListener("scroll", this.redraw);
    this.loader.dispose();
    this.counters.dispose();
  }

  setLayout(layout: Layout): void {
    this.layout = layout;
    this.told = "";
    this.spread();
    this.redraw();
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
    this.colours = new Colours(this.theme, text);
    this.strips.forget();
    this.redraw();
  }

  /** Reads the page's colours anew. */
  setTheme(search: string): void {
    this.theme = readTheme(this.parts.scroller);
    this.setSearch(search, this.hits);
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
    return new Scale(this.motion.view, this.width);
  }

  /** Lines on the screen. */
  get lines(): readonly Placed[] {
    return placed(this.layout, this.height, this.parts.scroller.scrollTop, this.pinnedShown);
  }

  /** The line at a height of the canvas; none on the ruler. */
  lineAt(y: number): Placed | null {
    if (y < RULER_PX) return null;
    // Pinned lines come first: they cover what scrolls below them.
    return this.lines.find(({ line, top }) => y >= top && y < top + line.height) ?? null;
  }

  /** What is at a place of the canvas. */
  hitAt(x: number, y: number): { line: Line; top: number; hit: Hit | null } | null {
    const at = this.lineAt(y);
    if (!at || at.line.row === null) return at ? { ...at, hit: null } : null;
    const { view } = this.motion;
    const scale = this.scale;
    const pieces = piecesOfRow(this.store, at.line.row, view, levelOf(this.deviceScale.ns_per_px));
    return { ...at, hit: at.line.kind === "counter" ? null : hitIn(at.line.row, pieces, scale, x) };
  }

  /** The values of a counter, as far as they are here. */
  counter(row: number): ReturnType<CounterLoader["parts"]["get"]> {
    return this.counters.parts.get(row);
  }

  /** Scrolls so that a row is seen; whether there is a line for it. */
  reveal(row: number): boolean {
    if (this.layout.pinned.some((line) => line.row === row && line.kind !== "density")) return true;
    const line = this.layout.lines.find((line) => line.row === row);
    if (!line) return false;
    const { scroller } = this.parts;
    const room = this.height - RULER_PX - this.pinnedShown;
    if (line.y < scroller.scrollTop) scroller.scrollTop = Math.max(line.y - HEADROOM_PX, 0);
    else if (line.y + line.height > scroller.scrollTop + room) {
      scroller.scrollTop = line.y + line.height - room + HEADROOM_PX;
    }
    this.redraw();
    return true;
  }

  /** Draws a frame soon, whoever asks however often. */
  readonly redraw = (): void => {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame((now) => this.draw(now));
  };

  private get pinnedShown(): number {
    return Math.min(this.layout.pinnedHeight, Math.floor((this.height - RULER_PX) * PINNED_PART));
  }

  private get deviceScale(): Scale {
    return new Scale(this.motion.view, this.width * this.ratio);
  }

  private resize(): void {
    const { canvas, minimap } = this.parts;
    this.ratio = devicePixelRatio || 1;
    for (const each of [canvas, minimap]) {
      const width = Math.max(Math.round(each.clientWidth * this.ratio), 1);
      const height = Math.max(Math.round(each.clientHeight * this.ratio), 1);
      if (each.width !== width) each.width = width;
      if (each.height !== height) each.height = height;
    }
    this.width = Math.max(canvas.clientWidth, 1);
    this.height = Math.max(canvas.clientHeight, 1);
    this.told = "";
    this.spread();
    this.redraw();
  }

  /** Makes the spacer as high as what does not fit. */
  private spread(): void {
    const hidden = this.layout.height - (this.height - RULER_PX - this.pinnedShown);
    this.parts.spacer.style.height = `${Math.max(hidden, 0)}px`;
  }

  private draw(now: number): void {
    if (this.frame === -1) return;
    this.frame = 0;
    const isMoving = this.motion.tick(this.before_ms > 0 ? Math.min(now - this.before_ms, 100) : 16);
    this.before_ms = isMoving ? now : 0;
    if (this.drawn !== this.motion.view) this.hearing.onView?.(this.motion.view);
    this.drawn = this.motion.view;
    const begin = performance.now();
    this.paint();
    this.frames_ms.push(performance.now() - begin);
    if (this.frames_ms.length > 2000) this.frames_ms.splice(0, 1000);
    if (isMoving && this.rested) this.hearing.onMoving();
    if (isMoving) {
      this.rested = null;
      this.redraw();
    } else if (this.rested !== this.motion.view) {
      this.rested = this.motion.view;
      this.hearing.onRest(this.motion.view);
    }
  }

  private paint(): void {
    const { context } = this;
    const scroll = this.parts.scroller.scrollTop;
    const level = levelOf(this.deviceScale.ns_per_px);
    const lines = this.lines;
    const rows = drawnRows(lines);
    const scene: Scene = {
      context,
      width: this.width,
      height: this.height,
      ratio: this.ratio,
      scale: this.scale,
      level,
      layout: this.layout,
      pinnedShown: this.pinnedShown,
      scroll,
      pieces: new Map(rows.map((row) => [row, piecesOfRow(this.store, row, this.motion.view, level)])),
      colours: this.colours,
      counters: this.counters.parts,
      steps: this.steps,
      zero_ns: this.zero_ns,
      emphasis: this.emphasis,
    };
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    drawGround(scene);
    const pinnedBottom = RULER_PX + this.pinnedShown;
    const isPinned = ({ line }: Placed) => line.isPinned;
    const others = lines.filter((each) => !isPinned(each));
    const pinned = lines.filter(isPinned);
    this.strips.make(scene, lines, this.generation);
    clipped(context, pinnedBottom, this.height, this.width, () => {
      drawHeaders(scene, others);
      this.strips.draw(scene, others);
      drawCounters(scene, others);
      drawNames(scene, others, this.measure);
    });
    clipped(context, RULER_PX, pinnedBottom, this.width, () => {
      this.strips.draw(scene, pinned);
      drawCounters(scene, pinned);
      drawNames(scene, pinned, this.measure);
    });
    if (pinned.length > 0) {
      context.fillStyle = this.theme.faint;
      context.fillRect(0, pinnedBottom - 1, this.width, 1);
    }
    drawRuler(scene, this.measure);
    drawOverlay(scene, lines);
    this.paintMinimap();
    this.ask(lines, rows, level);
    this.tell(lines, scroll, pinnedBottom);
  }

  private paintMinimap(): void {
    const { minimap } = this.parts;
    this.mapContext.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    drawMinimap({
      context: this.mapContext,
      width: minimap.clientWidth,
      height: minimap.clientHeight,
      theme: this.theme,
      span: this.span,
      view: this.motion.view,
      steps: this.steps,
      marks: this.emphasis.marks,
      range: this.emphasis.range,
      hits: this.hits,
      busy: this.busy,
    });
  }

  private ask(lines: readonly Placed[], rows: readonly number[], level: number): void {
    const { view } = this.motion;
    const { first, last } = tilesOf(view, level);
    // Whoever wants the same tiles as before need not ask again, unless some have come or failed.
    const key = `${rows.join()} ${level} ${first} ${last} ${this.generation}`;
    if (key !== this.asked) {
      this.asked = key;
      this.loader.want({ rows, view, level, end_ns: this.span.end_ns + 1 });
      const { isBehind } = this.loader;
      if (isBehind !== this.isBehind) this.hearing.onBehind(isBehind);
      this.isBehind = isBehind;
    }
    const counters = lines.flatMap(({ line }) => (line.kind === "counter" && line.row !== null ? [line.row] : []));
    this.counters.want([...new Set(counters)], view, level);
  }

  private tell(lines: readonly Placed[], scroll: number, pinnedBottom: number): void {
    const first = lines.find(({ line }) => !line.isPinned)?.line.key ?? "";
    const key = `${first} ${scroll} ${lines.length} ${pinnedBottom} ${this.height}`;
    if (key === this.told) return;
    this.told = key;
    this.hearing.onLines(lines, pinnedBottom);
  }
}

/** Rows of slices on the screen, each once. */
function drawnRows(lines: readonly Placed[]): number[] {
  const rows = lines.flatMap(({ line }) => (line.row !== null && line.kind !== "counter" ? [line.row] : []));
  return [...new Set(rows)];
}

/** Rows that are shown of a layout's lines, for the list beside the canvas. */
export function rowsOf(lines: readonly Placed[]): number[] {
  const rows = lines.flatMap(({ line }) => (line.row !== null && line.kind === "slices" ? [line.row] : []));
  return [...new Set(rows)];
}
