// How the shown window moves: towards where it should be, a part of the way each frame, or at once where a person wants
// less motion.

import { clampView, moved, type Span, zoomed } from "./view";

/** The way that is left after this many ms is 1/e of what it was. */
const EASE_MS = 45;

/** How much a held key zooms in a ms, as a factor's logarithm; and how much of a window it moves. */
const ZOOM_PER_MS = 0.004;
const PAN_PER_MS = 0.0012;

/** What one press does where there is no motion. */
const ZOOM_STEP = 1.5;
const PAN_STEP = 0.25;

export type Held = "in" | "out" | "left" | "right";

export class Motion {
  private target: Span;
  private readonly held = new Set<Held>();
  /** Where keys zoom: the time at the pointer. */
  pointer_ns: number | null = null;

  constructor(
    public view: Span,
    private limits: Span,
    private readonly isReduced: () => boolean,
  ) {
    this.target = view;
  }

  /** Where the window is going to be. */
  get goal(): Span {
    return this.target;
  }

  get isMoving(): boolean {
    return this.held.size > 0 || this.target !== this.view;
  }

  limit(span: Span): void {
    this.limits = span;
  }

  /** Goes there; `isAtOnce` for what follows a finger. */
  to(view: Span, isAtOnce = false): void {
    this.target = clampView(view, this.limits);
    if (isAtOnce || this.isReduced()) this.view = this.target;
  }

  zoom(factor: number, at_ns: number): void {
    this.to(zoomed(this.target, factor, at_ns));
  }

  press(key: Held): void {
    if (!this.isReduced()) {
      this.held.add(key);
      return;
    }
    const length = this.target.end_ns - this.target.start_ns;
    if (key === "in") this.zoom(ZOOM_STEP, this.center);
    else if (key === "out") this.zoom(1 / ZOOM_STEP, this.center);
    else this.to(moved(this.target, (key === "left" ? -1 : 1) * length * PAN_STEP));
  }

  release(key: Held): void {
    this.held.delete(key);
  }

  releaseAll(): void {
    this.held.clear();
  }

  /** Moves on by `ms` milliseconds. Whether there is more to come. */
  tick(ms: number): boolean {
    if (!this.isMoving) return false;
    const has = (key: Held) => (this.held.has(key) ? 1 : 0);
    const zoom = has("in") - has("out");
    const pan = has("right") - has("left");
    if (zoom !== 0)
      this.target = clampView(zoomed(this.target, Math.exp(zoom * ZOOM_PER_MS * ms), this.center), this.limits);
    if (pan !== 0) {
      const length = this.target.end_ns - this.target.start_ns;
      this.target = clampView(moved(this.target, pan * PAN_PER_MS * ms * length), this.limits);
    }
    const part = 1 - Math.exp(-ms / EASE_MS);
    const { view, target } = this;
    const next = {
      start_ns: view.start_ns + (target.start_ns - view.start_ns) * part,
      end_ns: view.end_ns + (target.end_ns - view.end_ns) * part,
    };
    // Less than a tenth of a pixel is not seen.
    const near = (target.end_ns - target.start_ns) / 20_000;
    const isThere = Math.abs(next.start_ns - target.start_ns) < near && Math.abs(next.end_ns - target.end_ns) < near;
    this.view = isThere ? target : next;
    return this.isMoving;
  }

  private get center(): number {
    const { pointer_ns, target } = this;
    const isInside = pointer_ns !== null && pointer_ns >= target.start_ns && pointer_ns <= target.end_ns;
    return isInside ? pointer_ns : (target.start_ns + target.end_ns) / 2;
  }
}
