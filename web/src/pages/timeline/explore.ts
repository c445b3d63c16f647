// What a person has chosen on the timeline, and what is known of it. The address has everything that a link needs;
// whoever changes it goes through here.

import { batch, computed, effect, signal, untracked } from "@preact/signals";
import { ApiError, bodyOf } from "../../api/client";
import type { ErrorBody } from "../../api/types";
import { arrowsOf, type FlowWay, flowEnd } from "../../canvas/flows";
import { allGroups, groupsAround, type KeyedGroup, layoutOf } from "../../canvas/layout";
import { type CounterPart, type Slice, type SliceDetails, spanOf, type TimelineInfo } from "../../canvas/model";
import { loadOverview } from "../../canvas/overview";
import type { Hovered } from "../../canvas/pointer";
import { rowsOf, type Timeline } from "../../canvas/timeline";
import { around, clampView, revealing, type Span } from "../../canvas/view";
import { LatestTask } from "../../components/timeline-shared/latest_task";
import type { Requests } from "../../components/timeline-shared/requests";
import { Rows } from "../../components/timeline-shared/rows";
import { clipped } from "../../format/printable";
import { param, route, setParams } from "../../state/route";
import {
  formatSpan,
  formatTimeline,
  isStep,
  parseSpan,
  parseTimeline,
  type SliceLink,
  type TimelineParams,
} from "../../state/timeline_params";
import { Search } from "./search";
import { numberOf, type Steps } from "./steps";

/** Slices of the window among which the uppermost is the first: as many as one answer has. */
const FIRST_OF = 200;

/** What a range is of: everything, or some rows. */
export interface Range extends Span {
  readonly rows: readonly number[];
}

export class Explore {
  /** What is selected, with everything known of it. */
  readonly details = signal<SliceDetails | null>(null);
  readonly hovered = signal<Hovered | null>(null);
  readonly range = signal<Range | null>(null);
  readonly search: Search;
  readonly isBehind = signal(false);
  readonly trouble = signal<ErrorBody | null>(null);
  /** What is told to those who listen. */
  readonly told = signal("");
  /** The window at rest. */
  readonly view: ReturnType<typeof signal<Span>>;

  readonly rows: Rows;
  // By its text, so that whoever follows it hears of it only when it says something else.
  private readonly addressText = computed(() => JSON.stringify(parseTimeline(route.value.params)));
  readonly address = computed(() => JSON.parse(this.addressText.value) as TimelineParams);
  readonly rank = computed(() => numberOf(param("rank")));
  private timeline: Timeline | null = null;
  private readonly stops: (() => void)[] = [];
  private readonly alone = new LatestTask((error) => {
    this.trouble.value = error === null ? null : bodyOf(error);
  });
  /** The window to which Back comes. */
  private stepView: Span | null = null;
  /** The window that is shown when the address has none. */
  private begin = "";
  /** The window moves to what was just selected: Back takes both back at once. */
  private isVisit = false;
  /** The selection as the address has it, once it is shown. */
  private selected = "";
  /** The hit that was found and is not selected yet: the next one is looked for from there. */
  private coming: Slice | null = null;

  constructor(
    readonly info: TimelineInfo,
    readonly steps: Steps,
    readonly requests: Requests,
  ) {
    const open = (opened: Parameters<typeof formatTimeline>[0]) => setParams(formatTimeline(opened), { replace: true });
    this.rows = new Rows(
      info.groups,
      () => this.address.value,
      () => this.rank.value,
      open,
    );
    this.search = new Search(requests, this.alone, (text, hits) => this.timeline?.setSearch(text, hits));
    this.view = signal<Span>(this.firstView());
  }

  /** Where the timeline begins: what the address says, a chosen step or window, or what the server has in focus. */
  private firstView(): Span {
    const { view } = this.address.peek();
    if (view) return view;
    const step = untracked(() => this.chosenStep());
    if (step) return around(step, 0.02);
    const window = parseSpan(untracked(() => param("window")));
    return window ? around(window, 0.05) : around(this.info.focus, 0.01);
  }

  /** The step that is chosen, where there is one; undefined while that is not known. */
  private chosenStep(): Span | null | undefined {
    const number = param("step");
    if (number === undefined) return null;
    return this.steps.find(this.rank.value, number);
  }

  /** Joins the canvas; from then on it shows what the address says. */
  join(timeline: Timeline): void {
    this.timeline = timeline;
    this.stepView = timeline.motion.goal;
    this.begin = formatSpan(timeline.motion.goal);
    const follow = (act: () => void) => this.stops.push(effect(act));
    follow(() => timeline.setLayout(layoutOf(this.rows.groups, this.rows.shown.value)));
    follow(() => this.followView());
    follow(() => this.followStep());
    follow(() => this.followSelection());
    follow(() => this.followRange());
    follow(() => this.search.follow(this.address.value.search));
    follow(() => timeline.setEmphasis({ marks: this.address.value.marks }));
    follow(() => {
      const details = this.details.value;
      timeline.setEmphasis({ selected: details?.slice ?? null, arrows: arrowsOf(details) });
    });
    follow(() => timeline.setEmphasis({ range: this.range.value }));
    follow(() => {
      const found = this.hovered.value;
      timeline.setEmphasis({ hovered: found?.hit ? { line: found.line.key, ...found.hit } : null });
    });
    follow(() => this.followSteps());
    const abort = new AbortController();
    this.stops.push(() => abort.abort());
    loadOverview(this.requests.canvas.fetchTiles, this.rows.groups, this.info.span.end_ns, abort.signal).then(
      (busy) => timeline.setBusy(busy),
      // Without it the strip above the rows shows everything else.
      () => {},
    );
  }

  leave(): void {
    for (const stop of this.stops.splice(0)) stop();
    this.alone.giveUpAll();
  }

  /** The rows that the sums of a range are of; none for all. */
  rowsFor(range: Range): readonly number[] {
    return range.rows.length > 0 ? range.rows : this.rows.ofRank();
  }

  /** The values of a counter, as far as they are here. */
  counter(row: number): CounterPart | undefined {
    return this.timeline?.counter(row);
  }

  // What the address says.

  private hadView = false;
  private followView(): void {
    const { view } = this.address.value;
    const shown = untracked(() => this.view.value);
    const hadView = this.hadView;
    this.hadView = view !== null;
    if (!this.timeline || (view && shown && formatSpan(shown) === formatSpan(view)) || (!view && !hadView)) return;
    // An address without a window is where the timeline begins.
    this.timeline.go(view ?? untracked(() => this.firstView()));
    this.stepView = this.timeline.motion.goal;
    if (!view) this.begin = formatSpan(this.stepView);
  }

  private stepBefore: string | undefined | null = null;
  private followStep(): void {
    const number = param("step");
    const isFirst = this.stepBefore === null;
    if (number === this.stepBefore) return;
    const step = this.chosenStep();
    // It comes here again once the step is known.
    if (step === undefined) return;
    this.stepBefore = number;
    if (!isFirst && step) this.timeline?.go(around(step, 0.02));
  }

  private followSteps(): void {
    const rank = this.rank.value ?? this.rows.groups[0]?.group.rank ?? 0;
    const steps = this.steps.ofRank(rank);
    this.timeline?.setSteps(
      (steps ?? []).map((step) => ({
        number: Number(step.number),
        rank: step.rank,
        start_ns: Number(step.start_ns),
        end_ns: Number(step.end_ns),
      })),
    );
  }

  private followSelection(): void {
    const { at, view } = this.address.value;
    const key = at ? keyOf(at) : "";
    if (key === this.selected) return;
    this.selected = key;
    if (!at) {
      this.details.value = null;
      return;
    }
    const isPlaced = view !== null;
    const rank = at.rank ?? this.rows.groups[0]?.group.rank ?? 0;
    if (at.name === null) {
      if (!isPlaced) this.center(at.start_ns);
      return;
    }
    this.alone.run("select", async (signal) => {
      const slice = await this.requests.named({ ...at, rank }, signal);
      if (!slice) {
        const where = `rank ${rank}, ${at.start_ns} ns: ${at.name}`;
        throw new ApiError({ what: "the slice of this link is not in this run", where }, 404);
      }
      await this.show(slice, signal, !isPlaced);
      // Who comes by a link sees the slice, not a speck in all of the time.
      if (!isPlaced) this.timeline?.go(around(spanOf(slice), 2));
    });
  }

  private followRange(): void {
    const span = this.address.value.range ?? parseSpan(param("window"));
    const before = this.range.peek();
    if (!span) this.range.value = null;
    else if (!before || formatSpan(before) !== formatSpan(span)) this.range.value = { ...span, rows: [] };
  }

  // What a person does.

  /** The window has come to rest: the address has it, and Back comes here again when it was a large move. */
  readonly onRest = (view: Span): void => {
    this.view.value = view;
    const known = this.address.peek().view;
    const isLarge = !this.isVisit && isStep(this.stepView, view);
    if (isLarge || this.isVisit) this.stepView = view;
    this.isVisit = false;
    if (formatSpan(view) === (known ? formatSpan(known) : this.begin)) return;
    setParams(formatTimeline({ view }), { replace: !isLarge });
  };

  /** Selects a slice by its number, as the canvas and lists have it. */
  select(slice: number, isRevealed = false): void {
    this.alone.run("select", (signal) => this.show(slice, signal, isRevealed));
  }

  /** Goes to a slice that is somewhere else: what hides it is opened. */
  readonly visit = (slice: Slice): void => {
    this.select(slice.id, true);
  };

  private async show(slice: number | Slice, signal: AbortSignal, isRevealed: boolean): Promise<void> {
    const details = await this.requests.details(typeof slice === "number" ? slice : slice.id, signal);
    const { start_ns, rank, name } = details.slice;
    const selected = keyOf(details.slice);
    this.selected = selected;
    this.coming = null;
    batch(() => {
      this.details.value = details;
      const known = this.address.peek().at;
      if (!known || keyOf(known) !== selected) {
        setParams(formatTimeline({ at: { start_ns, rank, name } }));
      }
      this.told.value = `${clipped(name, 300)}, ${this.rows.name(details.slice.row)}`;
    });
    if (isRevealed) this.reveal(details.slice);
  }

  private reveal(slice: Slice): void {
    const { timeline } = this;
    if (!timeline) return;
    if (this.rank.peek() !== null && this.rank.peek() !== slice.rank) setParams({ rank: String(slice.rank) });
    this.rows.openFor(slice);
    if (slice.row !== null) timeline.reveal(slice.row);
    const span = spanOf(slice);
    const next = revealing(timeline.motion.goal, span);
    const px = (span.end_ns - span.start_ns) / timeline.scale.ns_per_px;
    this.isVisit = true;
    timeline.go(px < 1 ? around(span, 40) : next);
  }

  private center(time_ns: number): void {
    const { timeline } = this;
    if (!timeline) return;
    const half = (timeline.motion.goal.end_ns - timeline.motion.goal.start_ns) / 2;
    timeline.go({ start_ns: time_ns - half, end_ns: time_ns + half });
  }

  /** Shows a track, wherever it is. */
  visitTrack(each: KeyedGroup): void {
    this.rows.openAround(each);
    const rows = allGroups([each]).flatMap(({ group }) => group.rows);
    const [row] = rows;
    if (row) this.timeline?.reveal(row.id);
  }

  setRange(range: Span, rows: readonly number[], isDone: boolean): void {
    const whole = {
      start_ns: Math.max(Math.round(range.start_ns), 0),
      end_ns: Math.max(Math.round(range.end_ns), 0),
      rows,
    };
    if (!isDone) {
      this.timeline?.setEmphasis({ range: whole });
      return;
    }
    this.range.value = whole;
    setParams(formatTimeline({ range: whole }));
  }

  clear(): void {
    if (this.details.peek() || this.address.peek().at) setParams(formatTimeline({ at: null }));
    else if (this.address.peek().range) setParams(formatTimeline({ range: null }));
    else if (this.address.peek().search) setParams(formatTimeline({ search: "" }));
  }

  /** The selection, the range, or what was in focus first, as large as it can be; then everything. */
  fit(): void {
    const { timeline } = this;
    if (!timeline) return;
    const slice = this.details.peek()?.slice;
    const range = this.range.peek();
    const goals = [slice ? around(spanOf(slice)) : null, range ? around(range, 0.05) : null];
    const found = [...goals, around(this.info.focus, 0.01), around(this.info.span, 0.01)];
    const all = found.flatMap((goal) => (goal ? clampView(goal, this.info.span) : []));
    const now = timeline.motion.goal;
    const isThere = (goal: Span) => !isStep(now, goal) && Math.abs(goal.start_ns - now.start_ns) < length(now) / 50;
    const at = all.findIndex(isThere);
    timeline.go(all[(at + 1) % all.length] ?? this.info.span);
  }

  fitTo(span: Span): void {
    this.timeline?.go(around(span));
  }

  mark(): void {
    const { timeline } = this;
    if (!timeline) return;
    const { view, pointer_ns } = timeline.motion;
    const time_ns = pointer_ns ?? this.details.peek()?.slice.start_ns ?? (view.start_ns + view.end_ns) / 2;
    const { marks } = this.address.peek();
    const reach = timeline.scale.ns_per_px * 4;
    const others = marks.filter((mark) => Math.abs(mark - time_ns) > reach);
    const next = others.length < marks.length ? others : [...marks, Math.max(Math.round(time_ns), 0)];
    setParams(formatTimeline({ marks: next }), { replace: true });
  }

  /** The slice after or before the selected one on its row; without one, the first that is shown. */
  step(way: "after" | "before"): void {
    const slice = this.details.peek()?.slice;
    this.alone.run("select", async (signal) => {
      const next = slice ? await this.requests.beside(slice, way, signal) : await this.firstShown(signal);
      if (next) await this.show(next, signal, true);
      else this.told.value = way === "after" ? "this is the last on its row" : "this is the first on its row";
    });
  }

  private async firstShown(signal: AbortSignal): Promise<Slice | undefined> {
    const rows = rowsOf(this.rows.lines.peek().lines);
    if (rows.length === 0 || !this.timeline) return undefined;
    const slices = await this.requests.list(rows, this.timeline.motion.goal, FIRST_OF, signal);
    const place = ({ row }: Slice) => rows.indexOf(row ?? -1);
    return slices.reduce<Slice | undefined>((top, next) => (top && place(top) <= place(next) ? top : next), undefined);
  }

  /** The slice around the selected one. */
  parent(): void {
    const parent = this.details.peek()?.ancestors[0];
    if (parent) this.visit(parent);
  }

  /** The first slice inside the selected one. */
  child(): void {
    const slice = this.details.peek()?.slice;
    const rows =
      slice && slice.row !== null ? groupsAround(this.rows.groups, slice.row)?.at(-1)?.group.rows : undefined;
    const at = rows?.findIndex(({ id }) => id === slice?.row) ?? -1;
    const below = rows?.[at + 1];
    if (!slice || !below || below.depth === 0) return;
    this.alone.run("select", async (signal) => {
      const [first] = await this.requests.list([below.id], spanOf(slice), 1, signal);
      if (first) await this.show(first, signal, true);
    });
  }

  /** Follows an arrow of the selection. */
  flow(way: FlowWay): void {
    const details = this.details.peek();
    const end = details && flowEnd(details, way);
    if (end) this.visit(end);
    else this.told.value = "no arrow leads there";
  }

  setSearch(text: string): void {
    setParams(formatTimeline({ search: text }), { replace: true });
  }

  nextHit(isForwards: boolean): void {
    const { search } = this.address.peek();
    const slice = this.coming ?? this.details.peek()?.slice;
    const view = this.timeline?.motion.goal ?? this.info.span;
    if (!search.trim()) return;
    this.alone.run("hit", async (signal) => {
      const hit = await this.search.next(search, isForwards, slice, view, this.info.span.end_ns, signal);
      this.coming = hit;
      if (hit) await this.show(hit, signal, true);
    });
  }
}

/** What tells one slice from another, as far as an address has it. */
const keyOf = ({ start_ns, rank, name }: SliceLink) => JSON.stringify(formatTimeline({ at: { start_ns, rank, name } }));
const length = (span: Span) => span.end_ns - span.start_ns;
