// The timeline page of one version of a run. The address is the only source of what is shown: acts write it, and only
// `follow…` functions act on it.

import { computed, effect } from "@preact/signals";
import type { DataSource } from "../../canvas/data";
import type { Pen } from "../../canvas/draw/pen";
import { arrowsOf } from "../../canvas/flows";
import { joinedOf } from "../../canvas/joined";
import { allGroups, type KeyedGroup, layoutOf } from "../../canvas/layout";
import { type Mark, toggled } from "../../canvas/marks";
import { followMinimap } from "../../canvas/minimap_pointer";
import { spanOf, type TimelineInfo } from "../../canvas/model";
import { loadOverview } from "../../canvas/overview";
import { followPointer, type PointerCallbacks } from "../../canvas/pointer";
import { keysOfRows, rowsOfKeys } from "../../canvas/row_keys";
import type { RangeOfRows } from "../../canvas/scene";
import type { Elements } from "../../canvas/surface";
import type { Timeline } from "../../canvas/timeline";
import { around, type Span } from "../../canvas/view";
import { CanvasState } from "../../components/timeline-shared/canvas_state";
import { followColours } from "../../components/timeline-shared/colours";
import type { Requests } from "../../components/timeline-shared/requests";
import { Rows } from "../../components/timeline-shared/rows";
import { stepBands } from "../../components/timeline-shared/step_bands";
import { showsCondensed } from "../../state/rank";
import { param, setParams } from "../../state/route";
import { formatTimeline, parseSpan, type SliceLink } from "../../state/timeline_params";
import { address } from "./address";
import { followCommands, type PageActs } from "./commands";
import { deviceSource, withDeviceRows } from "./device_rows";
import { pathSource, pieceBeside, withPathRows } from "./path_row";
import { Search } from "./search";
import { Selection } from "./selection";
import type { Steps } from "./steps";
import { Viewport } from "./viewport";

export class TimelineController {
  readonly rows: Rows;
  readonly canvas: CanvasState;
  readonly viewport: Viewport;
  readonly selection: Selection;
  readonly search: Search;
  private readonly window = computed(() => param("window"));
  /** What sums are of: the selected range, else the time window of all pages. */
  readonly range = computed<RangeOfRows | null>(() => {
    const range = address.range.value;
    if (range) return { ...range, rows: rowsOfKeys(this.rows.all, address.rangeRows.value) };
    const window = parseSpan(this.window.value);
    return window && { ...window, rows: [] };
  });
  private timeline: Timeline | null = null;
  private readonly source: DataSource;
  /** The rank of each row of a critical path. */
  readonly pathRows: ReadonlyMap<number, number>;
  private readonly ranksWithPath: readonly number[];
  /** Where on the critical path the slice was found that was selected last. */
  private onPath: { readonly at_ns: number; readonly start_ns: number } | null = null;

  constructor(
    readonly info: TimelineInfo,
    private readonly steps: Steps,
    readonly requests: Requests,
  ) {
    // Where only collectives of all ranks are shown, results would need the events of each.
    const none = { groups: info.groups, devices: new Map(), ranks: new Map() };
    const made = showsCondensed.peek() ? none : withDeviceRows(info.groups);
    const { groups, ranks } = showsCondensed.peek() ? none : withPathRows(made.groups, made.devices.size);
    this.pathRows = ranks;
    this.ranksWithPath = [...ranks.values()];
    this.source = pathSource(deviceSource(requests, made.devices), requests, ranks);
    this.rows = new Rows(
      groups,
      () => address.opened.value,
      () => address.rank.value,
      (opened) => setParams(formatTimeline(opened), { replace: true }),
      () => address.tracks.value,
    );
    this.canvas = new CanvasState(this.rows);
    this.viewport = new Viewport(info, steps);
    const { tasks } = this.canvas;
    this.selection = new Selection(requests, this.rows, this.viewport, tasks);
    this.search = new Search(requests, tasks, this.selection, this.viewport, info.span.end_ns, (text, hits) =>
      this.timeline?.setSearch(text, hits),
    );
  }

  /** Draws what the address says, until the function that it returns is called. */
  attach(elements: Elements, page: PageActs): () => void {
    const { canvas, info, requests, selection, viewport } = this;
    const timeline = canvas.attach(elements, requests, viewport, info.span, viewport.shown.peek(), this.source);
    this.timeline = timeline;
    const abort = new AbortController();
    const stops = [
      effect(() => timeline.setLayout(layoutOf(this.rows.groups, this.rows.shown.value))),
      viewport.follow(timeline),
      selection.follow(timeline),
      effect(() => this.search.follow(address.search.value)),
      this.followEmphasis(timeline),
      effect(() => this.followSteps(timeline)),
      followColours(timeline, () => address.search.peek().trim()),
      followMinimap(elements.minimap, timeline),
      followPointer(elements.canvas, timeline, this.pointerCallbacks(elements, page)),
      followCommands(timeline, this, page),
      () => abort.abort(),
    ];
    loadOverview(requests.canvas.fetchTiles, this.rows.groups, info.span.end_ns, abort.signal).then(
      (busy) => timeline.setBusy(busy),
      // Without it the strip above the rows shows everything else.
      () => {},
    );
    // For measurements from outside: how long frames took.
    Object.assign(elements.canvas, { frames_ms: timeline.frames_ms });
    return () => {
      for (const stop of stops) stop();
      canvas.detach();
      this.timeline = null;
    };
  }

  private followEmphasis(timeline: Timeline): () => void {
    const stops = [
      effect(() => timeline.setEmphasis({ marks: address.marks.value })),
      effect(() => {
        const details = this.selection.details.value;
        timeline.setEmphasis({ selected: details?.slice ?? null, arrows: arrowsOf(details) });
      }),
      effect(() => {
        const together = this.selection.together.value;
        timeline.setEmphasis({ joined: together && joinedOf(together.parts) });
      }),
      effect(() => timeline.setEmphasis({ range: this.range.value })),
      effect(() => {
        const found = this.canvas.hovered.value;
        timeline.setEmphasis({ hovered: found?.hit ? { line: found.line.key, ...found.hit } : null });
      }),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }

  private followSteps(timeline: Timeline): void {
    const rank = address.rank.value ?? this.rows.groups[0]?.group.rank ?? 0;
    timeline.setSteps(stepBands(this.steps.ofRank(rank) ?? []));
  }

  private pointerCallbacks({ canvas }: Elements, page: PageActs): PointerCallbacks {
    return {
      onHover: (hovered) => {
        this.canvas.hovered.value = hovered;
      },
      onClick: (hit) => {
        canvas.focus({ preventScroll: true });
        const link = hit && this.timeline?.item(hit)?.link;
        if (link) {
          this.visitPiece(hit.start_ns, link);
        } else if (hit === null || hit.slice === null) {
          this.clear();
          return;
        } else this.selection.select(hit.slice);
        page.showTab("slice");
      },
      onDoubleClick: (hit) =>
        hit ? this.viewport.go(around({ start_ns: hit.start_ns, end_ns: hit.start_ns + hit.dur_ns })) : this.fit(),
      onRange: (range, rows, isDone) => {
        this.drag(range, rows, isDone);
        if (isDone) page.showTab("range");
      },
    };
  }

  /** Selects the slice of the next or the previous piece of the critical path. */
  alongPath(way: "after" | "before"): void {
    const at = address.at.peek();
    const rank = at?.rank ?? address.rank.peek() ?? this.ranksWithPath[0];
    const { announcement } = this.selection;
    if (rank === undefined || !this.ranksWithPath.includes(rank)) {
      announcement.value = "there is no critical path";
      return;
    }
    const isOnPath = this.onPath !== null && this.onPath.start_ns === at?.start_ns;
    const from_ns = isOnPath && this.onPath ? this.onPath.at_ns : (at?.start_ns ?? this.viewport.goal.start_ns);
    this.canvas.tasks.run("path", async (signal) => {
      const piece = await pieceBeside(this.requests, rank, from_ns, way, signal);
      if (!piece) {
        announcement.value = way === "after" ? "the critical path ends here" : "the critical path begins here";
        return;
      }
      this.visitPiece(piece.at_ns, piece.link);
    });
  }

  /** Selects the slice of a piece of the critical path that begins at a moment. */
  visitPiece(at_ns: number, link: SliceLink): void {
    this.onPath = { at_ns, start_ns: link.start_ns };
    this.selection.visitNamed(link);
  }

  /** The rank whose critical path is meant: that of the only row that a range is of, or the one that is shown; null for all. */
  pathRank(rows: readonly number[]): number | null {
    const ranks = new Set(rows.flatMap((row) => this.pathRows.get(row) ?? []));
    const [only] = ranks.size === 1 ? ranks : this.ranksWithPath.length === 1 ? this.ranksWithPath : [];
    return only ?? address.rank.value ?? null;
  }

  /** The rows that the sums of a range are of; none for all. */
  rowsFor(range: RangeOfRows): readonly number[] {
    return range.rows.length > 0 ? range.rows : this.rows.ofRank();
  }

  /** Shows a track, wherever it is. */
  visitTrack(each: KeyedGroup): void {
    if (this.rows.isHidden(each.group.rows[0]?.id ?? null)) this.filterTracks("");
    this.rows.openAround(each);
    const [row] = allGroups([each]).flatMap(({ group }) => (group.kind === "rank" ? [] : group.rows));
    if (row) this.timeline?.reveal(row.id);
  }

  /** Keeps only the tracks that have this in their names, or in those of their groups. */
  filterTracks(text: string): void {
    setParams(formatTimeline({ tracks: text }), { replace: true });
  }

  /** Draws what the canvas shows with another pen. */
  drawWith(pen: Pen): void {
    this.timeline?.drawWith(pen);
  }

  private drag(range: Span, rows: readonly number[], isDone: boolean): void {
    const start_ns = Math.max(Math.round(range.start_ns), 0);
    const end_ns = Math.max(Math.round(range.end_ns), 0);
    this.timeline?.setEmphasis({ range: { start_ns, end_ns, rows } });
    if (!isDone) return;
    setParams(formatTimeline({ range: { start_ns, end_ns }, rangeRows: keysOfRows(this.rows.all, rows) }));
  }

  /** Selects no slice; without one no range, and without one nothing is searched. */
  clear(): void {
    if (address.at.peek()) this.selection.clear();
    else if (address.range.peek()) setParams(formatTimeline({ range: null }));
    else if (address.search.peek()) setParams(formatTimeline({ search: "" }));
  }

  /** The selection, the range, or what was in focus first, as large as it can be; then everything. */
  fit(): void {
    const slice = this.selection.details.peek()?.slice;
    const range = this.range.peek();
    this.viewport.fit([...(slice ? [around(spanOf(slice))] : []), ...(range ? [around(range, 0.05)] : [])]);
  }

  /** Marks the moment at the pointer, the start of the selection, or the middle; a mark that is there is taken away. */
  mark(): void {
    const { timeline } = this;
    if (!timeline) return;
    const { view, pointer_ns } = timeline.motion;
    const time_ns = pointer_ns ?? address.at.peek()?.start_ns ?? (view.start_ns + view.end_ns) / 2;
    this.setMarks(toggled(address.marks.peek(), time_ns, timeline.scale.ns_per_px * 4));
  }

  setMarks(marks: readonly Mark[]): void {
    setParams(formatTimeline({ marks }), { replace: true });
  }
}
