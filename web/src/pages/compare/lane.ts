// One of two timelines: what it shows, the other one shows from its own step on. What is opened in it, and the window of
// both, stand in the address.

import { effect, signal } from "@preact/signals";
import { bodyOf } from "../../api/client";
import type { ErrorBody, StepOfRun } from "../../api/types";
import { commandOf, heldOf } from "../../canvas/keys";
import { layoutOf } from "../../canvas/layout";
import { type Linked, placedAt, seenFrom } from "../../canvas/linked";
import { followMinimap } from "../../canvas/minimap_pointer";
import type { Slice, TimelineInfo } from "../../canvas/model";
import { followPointer, type Hovered, type PointerHearing } from "../../canvas/pointer";
import { type Hearing, type Parts, Timeline } from "../../canvas/timeline";
import { around, type Span } from "../../canvas/view";
import { followColours } from "../../components/timeline-shared/colours";
import { LatestTask } from "../../components/timeline-shared/latest_task";
import type { Requests } from "../../components/timeline-shared/requests";
import { Rows } from "../../components/timeline-shared/rows";
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
  readonly rows: Rows;
  readonly hovered = signal<Hovered | null>(null);
  /** The slice that was clicked. */
  readonly picked = signal<Slice | null>(null);
  readonly isBehind = signal(false);
  readonly trouble = signal<ErrorBody | null>(null);
  private timeline: Timeline | null = null;
  /** The window as the address has it. */
  private shown: string;
  private hasRested = false;
  private readonly alone = new LatestTask((error) => {
    this.trouble.value = error === null ? null : bodyOf(error);
  });

  constructor(private readonly of: LaneOf) {
    const { side, info, rank } = of;
    const names = { open: `${side}.open`, shut: `${side}.shut`, pins: `${side}.pin` };
    this.rows = new Rows(
      info.groups,
      () => ({ open: params(names.open), shut: params(names.shut), pins: params(names.pins) }),
      () => rank,
      ({ open, shut, pins }) =>
        setParams({ [names.open]: open, [names.shut]: shut, [names.pins]: pins }, { replace: true }),
    );
    this.shown = formatSpan(this.addressed());
  }

  /** Draws until the function that it returns is called. */
  draw(parts: Parts): () => void {
    const { requests, info, linked, begin, origin_ns } = this.of;
    const timeline = new Timeline(parts, requests.canvas, this.hearing(parts), info.span, placedAt(begin, origin_ns));
    this.timeline = timeline;
    timeline.setZero(origin_ns);
    timeline.setSteps(this.bands());
    linked.join(timeline, origin_ns, info.span);
    const stops = [
      effect(() => timeline.setLayout(layoutOf(this.rows.groups, this.rows.shown.value))),
      effect(() => timeline.setEmphasis({ selected: this.picked.value })),
      effect(() => this.followAddress()),
      followColours(timeline, () => ""),
      followMinimap(parts.minimap, timeline),
      followPointer(parts.canvas, timeline, this.pointerHearing(parts, timeline)),
    ];
    return () => {
      for (const stop of stops) stop();
      this.alone.giveUpAll();
      linked.leave(timeline);
      timeline.dispose();
      this.timeline = null;
    };
  }

  /** The values of a counter, as far as they are here. */
  counter(row: number): ReturnType<Timeline["counter"]> {
    return this.timeline?.counter(row);
  }

  readonly onKeyDown = (event: KeyboardEvent): void => {
    const held = heldOf(event);
    if (held) {
      this.timeline?.motion.press(held);
      this.timeline?.redraw();
    } else if (commandOf(event) === "fit") this.of.linked.show(this.of.begin);
    else return;
    event.preventDefault();
  };

  readonly onKeyUp = (event: KeyboardEvent): void => {
    const held = heldOf({ key: event.key, ctrlKey: false, metaKey: false, altKey: false });
    if (held) this.timeline?.motion.release(held);
  };

  readonly onBlur = (): void => this.timeline?.motion.releaseAll();

  private hearing(parts: Parts): Hearing {
    return {
      onLines: (lines, pinnedBottom) => {
        this.rows.lines.value = { lines, pinnedBottom };
      },
      onView: (view) => {
        if (this.timeline) this.of.linked.follow(this.timeline, view);
      },
      onRest: (view) => {
        const next = formatSpan(seenFrom(view, this.of.origin_ns));
        parts.canvas.dataset.view = next;
        this.tell(next);
      },
      onMoving: () => {
        this.hovered.value = null;
      },
      onTrouble: (error) => {
        this.trouble.value = bodyOf(error);
      },
      onBehind: (isBehind) => {
        this.isBehind.value = isBehind;
      },
    };
  }

  private pointerHearing(parts: Parts, timeline: Timeline): PointerHearing {
    return {
      onHover: (hovered) => {
        this.hovered.value = hovered;
      },
      onClick: (hit) => {
        parts.canvas.focus({ preventScroll: true });
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
    this.alone.run("pick", async (signal) => {
      this.picked.value = slice === null ? null : (await this.of.requests.details(slice, signal)).slice;
    });
  }

  private addressed(): Span {
    return parseSpan(param("view")) ?? this.of.begin;
  }

  /** Both lanes come to rest together: one of them tells the address. Where they begin needs no word. */
  private tell(view: string): void {
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

  private bands() {
    return this.of.steps.map((step) => ({
      number: Number(step.number),
      rank: step.rank,
      start_ns: Number(step.start_ns),
      end_ns: Number(step.end_ns),
    }));
  }
}
