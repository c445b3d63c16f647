// What is searched on the timeline: how much is found, and the way from hit to hit.

import { signal } from "@preact/signals";
import type { Found, NextHit, Slice } from "../../canvas/model";
import type { LatestTask } from "../../components/timeline-shared/latest_task";
import type { Requests } from "../../components/timeline-shared/requests";
import { setParams } from "../../state/route";
import { formatTimeline } from "../../state/timeline_params";
import { address } from "./address";
import type { Selection } from "./selection";
import type { Viewport } from "./viewport";

/** Which of the hits of a search is selected, from 1; 0 when none is. */
export interface SearchState {
  readonly found: Found | null;
  readonly position: number;
}

/** After so long without a key the text is searched. */
const PAUSE_MS = 120;

export class Search {
  readonly state = signal<SearchState>({ found: null, position: 0 });
  private text = "";

  /** `end_ns` is where the run ends. `onFound` is called with what is searched, and in which parts of the run it is. */
  constructor(
    private readonly requests: Requests,
    private readonly tasks: LatestTask,
    private readonly selection: Selection,
    private readonly viewport: Viewport,
    private readonly end_ns: number,
    private readonly onFound: (text: string, histogram: readonly number[]) => void,
  ) {}

  set(text: string): void {
    setParams(formatTimeline({ search: text }), { replace: true });
  }

  /** Searches this from now on. */
  follow(search: string): void {
    const text = search.trim();
    if (text === this.text) return;
    this.text = text;
    if (!text) {
      this.tasks.cancel("search");
      this.state.value = { found: null, position: 0 };
      this.onFound("", []);
      return;
    }
    this.state.value = { ...this.state.peek(), position: 0 };
    this.tasks.run("search", async (signal) => {
      await pause(PAUSE_MS, signal);
      const found = await this.requests.search(text, signal);
      // A hit of this text may be selected already.
      this.state.value = { ...this.state.peek(), found };
      this.onFound(text, found.histogram);
    });
  }

  /** Goes to the hit after or before the selected one, else the first in the window; after the last comes the first. */
  next(isForwards: boolean): void {
    const text = address.search.peek().trim();
    if (!text) return;
    const { slice } = this.selection;
    const { goal } = this.viewport;
    const isHit = slice?.name.toLowerCase().includes(text.toLowerCase()) ?? false;
    const from = slice && isHit ? slice : isForwards ? goal.start_ns : goal.end_ns;
    this.tasks.run("hit", async (signal) => {
      const hit = await this.hit(text, isForwards, from, signal);
      if (hit) this.selection.visit(hit);
    });
  }

  private async hit(text: string, isForwards: boolean, from: Slice | number, signal: AbortSignal) {
    let next: NextHit = await this.requests.nextHit(text, isForwards, from, signal);
    if (!next.hit && next.slices > 0) {
      next = await this.requests.nextHit(text, isForwards, isForwards ? 0 : this.end_ns + 1, signal);
    }
    if (next.hit && text === this.text) this.state.value = { ...this.state.peek(), position: next.position + 1 };
    return next.hit;
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
