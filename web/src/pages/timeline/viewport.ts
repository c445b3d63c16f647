// The window of time that is shown. Acts write it into the address, and the canvas goes where the address says. What moves
// under a finger or a held key is written once it has come to rest.

import { computed, effect, type Signal, signal } from "@preact/signals";
import type { Timeline } from "../../canvas/timeline";
import { around, clampView, revealing, type Span } from "../../canvas/view";
import { rankNumber } from "../../state/rank";
import { entered, route, setParams } from "../../state/route";
import { formatSpan, isLargeMove, parseSpan } from "../../state/timeline_params";
import { type Changes, paramOf, type Route } from "../../state/url";
import type { Steps } from "./steps";

export class Viewport {
  /** The window at rest. */
  readonly shown: Signal<Span>;
  private timeline: Timeline | null = null;
  /** The window that the address says; null while its step is not known. By its text: it changes when that does. */
  private readonly addressed = computed(() => {
    const view = this.viewAt(route.value);
    return view ? formatSpan(view) : null;
  });

  constructor(
    private readonly info: { readonly span: Span; readonly focus: Span },
    private readonly steps: Steps,
  ) {
    this.shown = signal(this.viewAt(route.peek()) ?? info.focus);
  }

  /** Shows on a canvas what the address says, until the function that it returns is called. */
  follow(timeline: Timeline): () => void {
    this.timeline = timeline;
    return effect(() => this.goToAddressed());
  }

  private goToAddressed(): void {
    const view = parseSpan(this.addressed.value ?? undefined);
    if (view && formatSpan(this.goal) !== formatSpan(view)) this.timeline?.go(view);
  }

  /** An address without a window is where the timeline begins: its step, its time window, or what the server has in focus. */
  private viewAt(at: Route): Span | null {
    const view = parseSpan(paramOf(at, "view"));
    if (view) return clampView(view, this.info.span);
    const number = paramOf(at, "step");
    const step = number === undefined ? null : this.steps.find(rankNumber(paramOf(at, "rank")), number);
    if (step === undefined) return null;
    const window = parseSpan(paramOf(at, "window"));
    const begin = step ? around(step, 0.02) : window ? around(window, 0.05) : around(this.info.focus, 0.01);
    return clampView(begin, this.info.span);
  }

  /** Where the canvas is going to be. */
  get goal(): Span {
    return this.timeline?.motion.goal ?? this.shown.peek();
  }

  /** The window has come to rest: the address has it, and Back comes here again when it was a large move. */
  readonly onRest = (view: Span): void => {
    this.shown.value = view;
    if (formatSpan(view) !== this.addressed.peek()) setParams(this.at(view), { replace: !this.isLarge(view) });
  };

  /** What the address is to have for a window. */
  at(view: Span): Changes {
    return { view: formatSpan(clampView(view, this.info.span)) };
  }

  go(view: Span): void {
    setParams(this.at(view), { replace: !this.isLarge(clampView(view, this.info.span)) });
    // The address may have had it already, and the canvas be on its way elsewhere.
    this.goToAddressed();
  }

  private isLarge(view: Span): boolean {
    const before = this.viewAt(entered.peek());
    return before !== null && isLargeMove(before, view);
  }

  /**
   * What the address is to have so that a part is seen, and is no speck; nothing where it is seen already. A moment, such
   * as a sample, is as wide at every zoom.
   */
  revealing(part: Span): Changes {
    const length = part.end_ns - part.start_ns;
    const isSpeck = this.timeline !== null && length > 0 && length < this.timeline.scale.ns_per_px;
    const next = isSpeck ? around(part, 40) : revealing(this.goal, part);
    return next === this.goal ? {} : this.at(next);
  }

  /** What the address is to have so that a moment is in the middle. */
  centred(time_ns: number): Changes {
    const half = (this.goal.end_ns - this.goal.start_ns) / 2;
    return this.at({ start_ns: time_ns - half, end_ns: time_ns + half });
  }

  /** Shows the next of these as large as it can be: some parts, what the server has in focus, everything. */
  fit(parts: readonly Span[]): void {
    const { span, focus } = this.info;
    const goals = [...parts, around(focus, 0.01), around(span, 0.01)].map((goal) => clampView(goal, span));
    const now = this.goal;
    const near = (now.end_ns - now.start_ns) / 50;
    const at = goals.findIndex((goal) => !isLargeMove(now, goal) && Math.abs(goal.start_ns - now.start_ns) < near);
    this.go(goals[(at + 1) % goals.length] ?? span);
  }
}
