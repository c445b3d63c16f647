// Which rows of a timeline are shown: groups that are open, tracks that are pinned, and where lines are on the screen.

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import {
  allGroups,
  groupsAround,
  isKept,
  isOpenIn,
  type KeyedGroup,
  keyed,
  type Shown,
  withGroup,
} from "../../canvas/layout";
import type { Slice, TimelineGroup } from "../../canvas/model";
import type { Placed } from "../../canvas/scene";
import { keptOf } from "../../canvas/track_filter";

/** What a person has opened, closed and pinned, by the keys of groups. */
export interface Opened {
  readonly open: readonly string[];
  readonly shut: readonly string[];
  readonly pins: readonly string[];
}

export class Rows {
  readonly groups: readonly KeyedGroup[];
  /** Every group, outermost first. */
  readonly all: readonly KeyedGroup[];
  /** Lines on the screen, and where those end that do not scroll. */
  readonly lines = signal<{ readonly lines: readonly Placed[]; readonly pinnedBottom: number }>({
    lines: [],
    pinnedBottom: 0,
  });
  readonly shown: ReadonlySignal<Shown>;
  private readonly names: ReadonlyMap<number, string>;

  /**
   * `opened`, `rank` and `filter` are signals or read some; `onChange` takes what is to be opened, closed and pinned from
   * now on.
   */
  constructor(
    groups: readonly TimelineGroup[],
    opened: () => Opened,
    readonly rank: () => number | null,
    private readonly onChange: (opened: Opened) => void,
    filter: () => string = () => "",
  ) {
    this.groups = keyed(groups);
    this.all = allGroups(this.groups);
    this.names = new Map(this.all.flatMap((each) => each.group.rows.map((row) => [row.id, each.path] as const)));
    // By its text, so that it changes only when it says something else.
    const text = computed(() => {
      const { open, shut, pins } = opened();
      return JSON.stringify([open, shut, pins, rank()]);
    });
    const kept = computed(() => keptOf(this.groups, filter()));
    this.shown = computed<Shown>(() => {
      const [open, shut, pins, rank] = JSON.parse(text.value) as [string[], string[], string[], number | null];
      return { open: new Set(open), shut: new Set(shut), pins: new Set(pins), rank, kept: kept.value };
    });
  }

  /** The path of a row: what a person calls it. */
  name(row: number | null): string {
    return row === null ? "" : (this.names.get(row) ?? "");
  }

  /** Whether a filter of tracks hides a row; what is pinned is seen. */
  isHidden(row: number | null): boolean {
    const path = row === null ? null : groupsAround(this.groups, row);
    const own = path?.at(-1);
    const shown = this.shown.value;
    return own !== undefined && !isKept(shown, own.key) && !shown.pins.has(own.key);
  }

  /** The rows of slices of the rank that is shown; none for all. */
  ofRank(): readonly number[] {
    const rank = this.rank();
    if (rank === null) return [];
    const rows = this.all.flatMap(({ group }) => (group.rank === rank ? group.rows : []));
    return rows.filter(({ kind }) => kind === "slices").map(({ id }) => id);
  }

  setOpen(key: string, isOpen: boolean): void {
    const group = this.all.find((each) => each.key === key);
    if (group) this.change(withGroup(this.shown.peek(), group, isOpen));
  }

  setPin(key: string, isPinned: boolean): void {
    const pins = new Set(this.shown.peek().pins);
    if (isPinned) pins.add(key);
    else pins.delete(key);
    this.change({ ...this.shown.peek(), pins });
  }

  /** Opens a track and everything around it. */
  openAround(each: KeyedGroup): void {
    const above = this.all.filter(({ key }) => each.key === key || each.key.startsWith(`${key}/`));
    this.change(above.reduce((shown, group) => withGroup(shown, group, true), this.shown.peek()));
  }

  /** Opens whatever hides a slice's row. */
  openFor(slice: Slice): void {
    const path = slice.row === null ? null : groupsAround(this.groups, slice.row);
    const closed = path?.filter((each) => !isOpenIn(this.shown.peek(), each)) ?? [];
    // Where ranks are a row each, a collective is seen there, beside those of the other ranks.
    if (closed[0]?.group.kind === "rank" && closed[0].group.rows.length > 0 && isCollective(slice)) return;
    const hidden = closed.filter(({ group }) => !isDrawnClosed(group));
    if (hidden.length === 0) return;
    this.change(hidden.reduce((shown, group) => withGroup(shown, group, true), this.shown.peek()));
  }

  private change({ open, shut, pins }: Shown): void {
    this.onChange({ open: [...open], shut: [...shut], pins: [...pins] });
  }
}

/** A track of one row is drawn whether it is open or not, and so are samples, of which only the frames are not. */
const isDrawnClosed = ({ kind, rows: [first, second] }: TimelineGroup): boolean =>
  kind === "track" && (second === undefined || first?.kind === "samples");

const isCollective = (slice: Slice): boolean => slice.kind === "kernel" && slice.class === "communication";
