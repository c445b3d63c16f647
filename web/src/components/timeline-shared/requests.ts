// What the timeline asks the server.

import { ask, askRaw } from "../../api/client";
import { type Query, runPath, withQuery } from "../../api/paths";
import type { Envelope, StepOfRun } from "../../api/types";
import type { DataSource } from "../../canvas/data";
import type {
  CounterPart,
  Found,
  NextHit,
  Slice,
  SliceDetails,
  Sums,
  TimelineInfo,
  Together,
} from "../../canvas/model";
import type { Span } from "../../canvas/view";
import { stepsPath } from "../../state/steps";
import type { SliceLink } from "../../state/timeline_params";

/** What sums are by. */
export const SUMS_BY = ["name", "kind", "track", "class"] as const;
export type SumsBy = (typeof SUMS_BY)[number];

const whole = ({ start_ns, end_ns }: Span) =>
  [
    ["start_ns", Math.max(Math.floor(start_ns), 0)],
    ["end_ns", Math.max(Math.ceil(end_ns), 0)],
  ] as const;

/** What is done until the rows are there: events of one rank are read when they are first asked for. */
export const loadingWords = ({ ofRank }: Requests): string =>
  ofRank === null ? "Laying out the timeline…" : `Reading all events of rank ${ofRank}…`;

/** The requests of one version of one run: of all that its timeline shows, or of the events of one rank. */
export class Requests {
  /** `ofRank` is null, but for a rank of a run that does not show all events at once: its slices have ids of their own. */
  constructor(
    readonly run: number,
    readonly version: number,
    readonly ofRank: number | null,
  ) {}

  readonly canvas: DataSource = {
    fetchTiles: async ({ rows, level, first, count }, signal) => {
      const query = [
        ["v", this.version],
        ["rows", rows.join()],
        ["level", level],
        ["first", first],
        ["count", count],
      ] as const;
      return (await askRaw(this.path("tiles", query), signal)).arrayBuffer();
    },
    fetchCounters: (rows, window, points, signal) =>
      ask<readonly CounterPart[]>(
        this.path("counters", [["rows", rows.join()], ...whole(window), ["points", points]]),
        signal,
      ),
  };

  info = (signal: AbortSignal) => ask<TimelineInfo>(this.path("timeline", []), signal);

  /** Rows of a result, of all of the time. */
  analysis = (name: string, query: Query, signal: AbortSignal) =>
    ask<Envelope>(withQuery(runPath(this.run, `analyses/${name}`), query), signal);

  /** Steps of a rank, or of all ranks with a number. */
  steps = (of: { readonly rank?: number; readonly step?: string }, signal: AbortSignal) =>
    ask<readonly StepOfRun[]>(stepsPath(this.run, of), signal);

  details = (slice: number, signal: AbortSignal) => ask<SliceDetails>(this.detailsPath(slice), signal);

  /** Where the server has everything known of a slice: its `SliceDetails`. */
  detailsPath = (slice: number) => this.path(`slices/${slice}`, []);

  /** The collective that a slice belongs to, on all ranks. */
  joined = (slice: number, signal: AbortSignal) => ask<Together>(this.path(`slices/${slice}/joined`, []), signal);

  /** Where the server has the text of a slice: a `SourceText`. */
  sourceTextPath = (slice: number) => this.path(`slices/${slice}/source_text`, []);

  /** The slice that a link names. */
  named = ({ rank, start_ns, name }: SliceLink, signal: AbortSignal) =>
    ask<Slice | null>(
      this.path("slices", [
        ["rank", rank],
        ["start_ns", start_ns],
        ["name", name],
      ]),
      signal,
    );

  /** The slice beside one on its row. */
  beside = (slice: Slice, way: "after" | "before", signal: AbortSignal) =>
    ask<Slice | null>(
      this.path("slices", [
        ["row", slice.row],
        [way, slice.id],
      ]),
      signal,
    );

  /** What rows show, by start. */
  list = (rows: readonly number[], window: Span, limit: number, signal: AbortSignal) =>
    ask<readonly Slice[]>(this.path("slices", [["rows", rows.join()], ...whole(window), ["limit", limit]]), signal);

  sums = (window: Span, by: SumsBy, rows: string, signal: AbortSignal) =>
    ask<Sums>(this.path("sums", [...whole(window), ["by", by], ["rows", rows], ["limit", 200]]), signal);

  search = (text: string, signal: AbortSignal) =>
    ask<Found>(
      this.path("search", [
        ["q", text],
        ["limit", 50],
      ]),
      signal,
    );

  /** The hit after or before a slice, or a moment. */
  nextHit = (text: string, isForwards: boolean, from: Slice | number, signal: AbortSignal) => {
    const time_ns = Math.max(Math.round(typeof from === "number" ? from : from.start_ns), 0);
    const slice = typeof from === "number" ? null : from.id;
    const query = [
      ["q", text],
      [isForwards ? "after_ns" : "before_ns", time_ns],
      ["slice", slice],
    ] as const;
    return ask<NextHit>(this.path("search/next", query), signal);
  };

  /** All events that the timeline shows, or what lies in a window of them, as a file. */
  exportPath = (format: "chrome" | "perfetto", window: Span | null) =>
    this.path("export", [["format", format], ...(window ? whole(window) : [])]);

  private path(rest: string, query: Parameters<typeof withQuery>[1]): string {
    return withQuery(runPath(this.run, rest), [...query, ["of_rank", this.ofRank]]);
  }
}
