// The slice that is selected. Acts write it into the address; everything known of what the address names is loaded.

import { batch, computed, effect, signal, untracked } from "@preact/signals";
import { ApiError } from "../../api/client";
import { type FlowWay, flowEnd } from "../../canvas/flows";
import { groupsAround } from "../../canvas/layout";
import { isSample, type Slice, type SliceDetails, spanOf, type Together } from "../../canvas/model";
import { sliceRows, type Timeline } from "../../canvas/timeline";
import { around } from "../../canvas/view";
import type { LatestTask } from "../../components/timeline-shared/latest_task";
import type { Requests } from "../../components/timeline-shared/requests";
import type { Rows } from "../../components/timeline-shared/rows";
import { clipped } from "../../format/printable";
import { showsCondensed } from "../../state/rank";
import { param, setParams } from "../../state/route";
import { formatTimeline, parseSpan, type SliceLink } from "../../state/timeline_params";
import type { Changes } from "../../state/url";
import { address } from "./address";
import type { Viewport } from "./viewport";

/** Slices of the window among which the uppermost is the first: as many as one answer has. */
const FIRST_OF = 200;
/** Rows that the first slice is looked for on. */
const MOST_ROWS = 100;

export class Selection {
  /** The slice that was selected last: which one is meant where the address has the same words for several. */
  private readonly picked = signal<Slice | null>(null);
  private readonly loaded = signal<SliceDetails | null>(null);
  /** Everything known of the selected slice; while it loads, of the one before. */
  readonly details = computed(() => (address.at.value ? this.loaded.value : null));
  private readonly found = signal<{ readonly slice: number; readonly together: Together } | null>(null);
  /** The collective that the selected slice belongs to, on all ranks; null where it belongs to none, and while it loads. */
  readonly together = computed(() => {
    const found = this.found.value;
    return found && found.slice === this.details.value?.slice.id && found.together.parts.length > 0
      ? found.together
      : null;
  });
  /** What is said to those who listen. */
  readonly announcement = signal("");
  private timeline: Timeline | null = null;

  constructor(
    private readonly requests: Requests,
    private readonly rows: Rows,
    private readonly viewport: Viewport,
    private readonly tasks: LatestTask,
  ) {}

  /** The selected slice, as soon as it is known. */
  get slice(): Slice | null {
    return address.at.peek() ? this.picked.peek() : null;
  }

  /** Loads what the address names, until the function that it returns is called. */
  follow(timeline: Timeline): () => void {
    this.timeline = timeline;
    const stops = [
      effect(() => {
        const at = address.at.value;
        const picked = this.picked.value;
        if (at) untracked(() => this.load(at, picked && keyOf(picked) === keyOf(at) ? picked : null));
      }),
      effect(() => this.findTogether(this.details.value)),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }

  private findTogether(details: SliceDetails | null): void {
    const isOfSeveral = new Set(this.rows.groups.map(({ group }) => group.rank)).size > 1;
    if (!details || !isOfSeveral || isSample(details.slice)) return;
    const slice = details.slice.id;
    this.tasks.run("joined", async (signal) => {
      this.found.value = { slice, together: await this.requests.joined(slice, signal) };
    });
  }

  private load(at: SliceLink, picked: Slice | null): void {
    if (picked && picked.id === this.loaded.peek()?.slice.id) return;
    const { ofRank } = this.requests;
    // On the timeline of one rank there are no slices of another.
    if (ofRank !== null && at.rank !== null && at.rank !== ofRank) {
      this.forget();
      return;
    }
    const isPlaced = parseSpan(param("view")) !== null;
    if (!picked && at.name === null) {
      if (this.goToRank(at)) return;
      if (!isPlaced) setParams(this.viewport.centred(at.start_ns), { replace: true });
      return;
    }
    this.tasks.run("select", async (signal) => {
      const slice = picked ?? (await this.named(at, signal));
      if (!slice) {
        if (this.goToRank(at)) return;
        const where = `rank ${at.rank ?? this.firstRank}, ${at.start_ns} ns: ${at.name}`;
        throw new ApiError({ what: "the slice of this link is not in this run", where }, 404);
      }
      const details = await this.requests.details(slice.id, signal);
      this.show(details);
      if (picked) return;
      // A link without a window shows the slice, not a speck in all of the time.
      if (isPlaced) this.pick(slice, {}, true);
      else this.reveal(slice, this.viewport.at(around(spanOf(slice), 2)), true);
    });
  }

  private forget(): void {
    batch(() => {
      this.picked.value = null;
      this.loaded.value = null;
    });
  }

  private get firstRank(): number {
    return this.rows.groups[0]?.group.rank ?? 0;
  }

  private named(at: SliceLink, signal: AbortSignal): Promise<Slice | null> {
    return this.requests.named({ ...at, rank: at.rank ?? this.firstRank }, signal);
  }

  /** Goes to the timeline of the rank that a link is about, where this one shows only collectives. */
  private goToRank({ rank }: SliceLink): boolean {
    if (rank === null || !showsCondensed.peek()) return false;
    setParams({ rank: String(rank) }, { replace: true });
    return true;
  }

  private show(details: SliceDetails): void {
    this.loaded.value = details;
    this.announcement.value = `${clipped(details.slice.name, 300)}, ${this.rows.name(details.slice.row)}`;
  }

  private pick(slice: Slice, changes: Changes, replace: boolean): void {
    const at = address.at.peek();
    const isSame = at !== null && keyOf(at) === keyOf(slice);
    batch(() => {
      this.picked.value = slice;
      setParams(isSame ? changes : { ...linkTo(slice), ...changes }, { replace: replace || isSame });
    });
  }

  /** Selects a slice that may be out of sight: what hides it is opened. */
  private reveal(slice: Slice, view: Changes, replace: boolean): void {
    const isOfOtherRank = address.rank.peek() !== null && address.rank.peek() !== slice.rank;
    batch(() => {
      this.pick(slice, isOfOtherRank ? { ...view, rank: String(slice.rank) } : view, replace);
      this.rows.openFor(slice);
    });
    if (slice.row !== null) this.timeline?.reveal(slice.row);
  }

  /** Goes to a slice that is somewhere else. */
  readonly visit = (slice: Slice): void => {
    this.reveal(slice, this.viewport.revealing(spanOf(slice)), false);
  };

  /** Goes to the slice that a link names. */
  visitNamed(link: SliceLink): void {
    this.tasks.run("select", async (signal) => {
      const slice = await this.named(link, signal);
      if (!slice) return;
      const details = await this.requests.details(slice.id, signal);
      batch(() => {
        this.show(details);
        this.visit(details.slice);
      });
    });
  }

  /** Selects a slice by its number, as the canvas and sums have it. */
  select(slice: number, isElsewhere = false): void {
    this.tasks.run("select", async (signal) => {
      const details = await this.requests.details(slice, signal);
      batch(() => {
        this.show(details);
        if (isElsewhere) this.visit(details.slice);
        else this.pick(details.slice, {}, false);
      });
    });
  }

  clear(): void {
    setParams(formatTimeline({ at: null }));
  }

  /** The slice after or before the selected one on its row; without one, the first that is shown. */
  step(way: "after" | "before"): void {
    const { slice } = this;
    this.tasks.run("select", async (signal) => {
      const next = slice ? await this.requests.beside(slice, way, signal) : await this.firstShown(signal);
      if (next) this.visit(next);
      else this.announcement.value = way === "after" ? "this is the last on its row" : "this is the first on its row";
    });
  }

  private async firstShown(signal: AbortSignal): Promise<Slice | undefined> {
    const visible = sliceRows(this.rows.lines.peek().lines);
    const rows = visible.length > 0 ? visible : this.rowsOfSlices();
    if (rows.length === 0) return undefined;
    const slices = await this.requests.list(rows, this.viewport.goal, FIRST_OF, signal);
    const line = ({ row }: Slice) => rows.indexOf(row ?? -1);
    return slices.reduce<Slice | undefined>((top, next) => (top && line(top) <= line(next) ? top : next), undefined);
  }

  /** Rows of slices, wherever they are: on a small screen there may be none that is seen. */
  private rowsOfSlices(): number[] {
    const rows = this.rows.all.flatMap(({ group }) => group.rows);
    return rows
      .flatMap(({ id, kind }) => (kind === "slices" && !this.rows.isHidden(id) ? [id] : []))
      .slice(0, MOST_ROWS);
  }

  /** The slice around the selected one. */
  parent(): void {
    this.withDetails(({ ancestors: [parent] }) => {
      if (parent) this.visit(parent);
    });
  }

  /** The first slice inside the selected one. */
  child(): void {
    const { slice } = this;
    const rows =
      slice && slice.row !== null ? groupsAround(this.rows.groups, slice.row)?.at(-1)?.group.rows : undefined;
    const at = rows?.findIndex(({ id }) => id === slice?.row) ?? -1;
    const below = rows?.[at + 1];
    if (!slice || !below || below.depth === 0) return;
    this.tasks.run("select", async (signal) => {
      const [first] = await this.requests.list([below.id], spanOf(slice), 1, signal);
      if (first) this.visit(first);
    });
  }

  /** Follows an arrow of the selection. */
  flow(way: FlowWay): void {
    this.withDetails((details) => {
      const end = flowEnd(details, way);
      if (end) this.visit(end);
      else this.announcement.value = "no arrow leads there";
    });
  }

  /** Calls `act` with everything known of the selected slice, also where that still loads. */
  private withDetails(act: (details: SliceDetails) => void): void {
    const { slice } = this;
    if (!slice) return;
    this.tasks.run("select", async (signal) => {
      const loaded = this.loaded.peek();
      const details = loaded?.slice.id === slice.id ? loaded : await this.requests.details(slice.id, signal);
      batch(() => {
        if (details !== loaded) this.show(details);
        act(details);
      });
    });
  }
}

const linkTo = ({ start_ns, rank, name }: SliceLink): Changes => formatTimeline({ at: { start_ns, rank, name } });

/** What tells one slice from another, as far as an address has it. */
const keyOf = (slice: SliceLink) => JSON.stringify(linkTo(slice));
