// What a canvas calls back, as signals that the components around it follow.

import { signal } from "@preact/signals";
import { bodyOf } from "../../api/client";
import type { ErrorBody } from "../../api/types";
import type { DataSource } from "../../canvas/data";
import type { CounterPart } from "../../canvas/model";
import type { Hovered } from "../../canvas/pointer";
import type { Elements } from "../../canvas/surface";
import { type Callbacks, Timeline } from "../../canvas/timeline";
import type { Span } from "../../canvas/view";
import { LatestTask } from "./latest_task";
import type { Requests } from "./requests";
import type { Rows } from "./rows";

export class CanvasState {
  readonly hovered = signal<Hovered | null>(null);
  /** Whether something that is shown is still on its way, or nothing has been drawn yet. */
  readonly isLoading = signal(true);
  readonly error = signal<ErrorBody | null>(null);
  readonly tasks = new LatestTask((error) => this.setError(error));
  private timeline: Timeline | null = null;
  private requests: Requests | null = null;

  constructor(readonly rows: Rows) {}

  /** Draws a run on these elements, until it is detached. */
  attach(
    elements: Elements,
    requests: Requests,
    callbacks: Pick<Callbacks, "onRest" | "onView">,
    span: Span,
    view: Span,
    source: DataSource = requests.canvas,
  ): Timeline {
    const all: Callbacks = {
      ...callbacks,
      onLines: (lines, pinnedBottom) => {
        this.rows.lines.value = { lines, pinnedBottom };
      },
      onMoving: () => {
        this.hovered.value = null;
      },
      onError: (error) => this.setError(error),
      onLoading: (isLoading) => {
        this.isLoading.value = isLoading;
      },
    };
    this.isLoading.value = true;
    this.requests = requests;
    this.timeline = new Timeline(elements, source, all, span, view);
    return this.timeline;
  }

  detach(): void {
    this.tasks.cancelAll();
    this.timeline?.dispose();
    this.timeline = null;
  }

  /** The values of a counter, as far as they are here. */
  readonly counter = (row: number): CounterPart | undefined => this.timeline?.counter(row);

  /** Where everything known of a slice or a sample is asked for, and the version of the run. */
  readonly detailsOf = (slice: number): { readonly path: string; readonly version: number } | null =>
    this.requests && { path: this.requests.detailsPath(slice), version: this.requests.version };

  private setError(error: unknown): void {
    this.error.value = error === null ? null : bodyOf(error);
  }
}
