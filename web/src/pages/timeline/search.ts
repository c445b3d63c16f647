// What is searched on the timeline: how much is found, and the way from hit to hit.

import { signal } from "@preact/signals";
import type { Found, NextHit, Slice } from "../../canvas/model";
import type { Span } from "../../canvas/view";
import type { LatestTask } from "../../components/timeline-shared/latest_task";
import type { Requests } from "../../components/timeline-shared/requests";

/** Which of the hits of a search is selected, from 1; 0 when none is. */
export interface SearchState {
  readonly found: Found | null;
  readonly position: number;
}

/** A person who types is waited for that long. */
const PAUSE_MS = 120;

export class Search {
  readonly state = signal<SearchState>({ found: null, position: 0 });
  private text = "";

  /** `onFound` hears what is searched, and in which parts of the run it is. */
  constructor(
    private readonly requests: Requests,
    private readonly alone: LatestTask,
    private readonly onFound: (text: string, histogram: readonly number[]) => void,
  ) {}

  /** Searches this from now on. */
  follow(search: string): void {
    const text = search.trim();
    if (text === this.text) return;
    this.text = text;
    if (!text) {
      this.alone.giveUp("search");
      this.state.value = { found: null, position: 0 };
      this.onFound("", []);
      return;
    }
    this.state.value = { ...this.state.peek(), position: 0 };
    this.alone.run("search", async (signal) => {
      await pause(PAUSE_MS, signal);
      const found = await this.requests.search(text, signal);
      // A hit of this text may be selected already.
      this.state.value = { ...this.state.peek(), found };
      this.onFound(text, found.histogram);
    });
  }

  /** The hit after or before the selected one, else the first in the window; after the last comes the first. */
  async next(
    search: string,
    isForwards: boolean,
    selected: Slice | undefined,
    view: Span,
    end_ns: number,
    signal: AbortSignal,
  ): Promise<Slice | null> {
    const text = search.trim();
    const isHit = selected?.name.toLowerCase().includes(text.toLowerCase()) ?? false;
    const from = selected && isHit ? selected : isForwards ? view.start_ns : view.end_ns;
    let next: NextHit = await this.requests.nextHit(text, isForwards, from, signal);
    if (!next.hit && next.slices > 0) {
      next = await this.requests.nextHit(text, isForwards, isForwards ? 0 : end_ns + 1, signal);
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
