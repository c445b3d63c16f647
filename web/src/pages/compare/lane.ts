// One of two timelines: what it shows, the other one shows from its own step on. What is opened in it, and the window of
// both, stand in the address.

import { effect, signal } from "@preact/signals";
import type { StepOfRun } from "../../api/types";
import { followKeys } from "../../canvas/keyboard";
import { commandOf } from "../../canvas/keys";
import { layoutOf } from "../../canvas/layout";
import { type Linked, placedAt, seenFrom } from "../../canvas/linked";
import { followMinimap } from "../../canvas/minimap_pointer";
import type { Slice, TimelineInfo } from "../../canvas/model";
import { followPointer, type PointerCallbacks } from "../../canvas/pointer";
import type { Elements } from "../../canvas/surface";
import type { Callbacks, Timeline } from "../../canvas/timeline";
import { around, type Span } from "../../canvas/view";
import { CanvasState } from "../../components/timeline-shared/canvas_state";
import { followColours } from "../../components/timeline-shared/colours";
import type { Requests } from "../../components/timeline-shared/requests";
import { Rows } from "../../components/timeline-shared/rows";
import { stepBands } from "../../components/timeline-shared/step_bands";
import { param, params, setParams } from "../../state/route";
import { formatSpan, parseSpan } from "../../state/timeline_params";

export interface LaneOf {
  /** Tells this lane's choices in the address from those of the other. */
  readonly side: "a" | "b";
  readonly rank: number | null;
  readonly requests: Requests;
  readonly info: TimelineInfo;
  /** Those of the rank, or of the first rank that has any. */
  readonly steps: readonly StepOfRun[];
  /** The start of the step, which the other lane has at the same place. */
  readonly origin_ns: number;
  /** What is shown at first, from the origin on. */
  readonly begin: Span;
  readonly linked: Linked;
}

export class Lane {
  readonly canvas: CanvasState;
  /** The slice that was clicked. */
  readonly picked = signal<Slice | null>(null);
  /** The window as the address has it. */
  private shown: string;
  private hasRested = false;

  constructor(private readonly of: LaneOf) {
    const { side, info, rank } = of;
    const names = { open: `${side}.open`, shut: `${side}.shut`, pins: `${side}.pin` };
    const rows = new Rows(
      info.groups,
      () => ({ open: params(names.open), shut: params(names.shut), pins: params(names.pins) }),
      () => rank,
      ({ open, shut, pins }) =>
        setParams({ [names.open]: open, [names.shut]: shut, [names.pins]: pins }, { replace: true }),
    );
    this.canvas = new CanvasState(rows);
    this.shown = formatSpan(this.addressed());
  }

  /** Draws until the function that it returns is called. */
  readonly draw = (elements: Elements): (() => void) => {
    const { requests, info, linked, begin, origin_ns } = this.of;
    const callbacks: Pick<Callbacks, "onRest" | "onView"> = {
      onView: (view) => linked.follow(timeline, view),
      onRest: (view) => {
        const next = formatSpan(seenFrom(view, origin_ns));
        elements.canvas.dataset.view = next;
        this.write(next);
      },
    };
    const timeline = this.canvas.attach(elements, requests, callbacks, info.span, placedAt(begin, origin_ns));
    timeline.setZero(origin_ns);
    timeline.setSteps(stepBands(this.of.steps));
    linked.attach(timeline, origin_ns, info.span);
    const { rows } = this.canvas;
    const stops = [
      effect(() => timeline.setLayout(layoutOf(rows.groups, rows.shown.value))),
      effect(() => timeline.setEmphasis({ selected: this.picked.value })),
      effect(() => this.followAddress()),
      followColours(timeline, () => ""),
      followMinimap(elements.minimap, timeline),
      followPointer(elements.canvas, timeline, this.pointerCallbacks(elements, timeline)),
      followKeys(elements.canvas, timeline, (event) => {
        if (commandOf(event) !== "fit") return false;
        linked.show(begin);
        return true;
      }),
    ];
    return () => {
      for (const stop of stops) stop();
      linked.detach(timeline);
      this.canvas.detach();
    };
  };

  private pointerCallbacks({ canvas }: Elements, timeline: Timeline): PointerCallbacks {
    return {
      onHover: (hovered) => {
        this.canvas.hovered.value = hovered;
      },
      onClick: (hit) => {
        canvas.focus({ preventScroll: true });
        this.pick(hit?.slice ?? null);
      },
      onDoubleClick: (hit) => {
        if (hit) timeline.go(around({ start_ns: hit.start_ns, end_ns: hit.start_ns + hit.dur_ns }));
        else this.of.linked.show(this.of.begin);
      },
      onRange: (range, _rows, isDone) => {
        timeline.setEmphasis({ range: isDone ? null : { ...range, rows: [] } });
        if (isDone) timeline.go(range);
      },
    };
  }

  private pick(slice: number | null): void {
    this.canvas.tasks.run("pick", async (signal) => {
      this.picked.value = slice === null ? null : (await this.of.requests.details(slice, signal)).slice;
    });
  }

  private addressed(): Span {
    return parseSpan(param("view")) ?? this.of.begin;
  }

  /** Both lanes come to rest together: one of them writes the address. Where they begin needs no word. */
  private write(view: string): void {
    const isNews = this.of.side === "a" && this.hasRested && view !== this.shown;
    this.hasRested = true;
    if (!isNews) return;
    this.shown = view;
    setParams({ view }, { replace: true });
  }

  /** Back, and links: one lane follows, and both move. */
  private followAddress(): void {
    const view = this.addressed();
    if (this.of.side === "b" || formatSpan(view) === this.shown) return;
    this.shown = formatSpan(view);
    this.of.linked.show(view);
  }
}
