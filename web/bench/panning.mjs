// Somebody who looks around in a timeline: a place and a zoom, and what the page asks the server for there.

import { random } from "./numbers.mjs";

/** Rows on the screen, and how wide it is in pixels. */
const ROWS = 40;
const WIDTH_PX = 1500;
/** Rows times tiles of a request, as the page has it. */
const BLOCKS = 256;
const BINS = 512;

/** The rows that are drawn of a run, in the order of the page, and those of groups that are closed. */
export function rowsOf(groups, isShown = true) {
  const open = [];
  const closed = [];
  for (const group of groups) {
    const isOpen = isShown && group.is_open;
    if (isShown && !isOpen && group.summary !== null) open.push(group.summary);
    for (const row of group.rows) if (row.kind !== "counter") (isOpen ? open : closed).push(row.id);
    const [opened, shut] = rowsOf(group.groups, isOpen);
    open.push(...opened);
    closed.push(...shut);
  }
  return [open, closed];
}

/** A person. What is asked follows from `seed`. */
export class Person {
  constructor(run, seed) {
    const [open, closed] = rowsOf(run.groups);
    this.rows = [...open, ...closed].slice(0, ROWS);
    this.version = run.version;
    this.span = run.span;
    this.next = random(seed);
    this.ns_per_px = (run.span.end_ns - run.span.start_ns) / WIDTH_PX;
    this.widest = this.ns_per_px;
    this.start_ns = 0;
  }

  /** Moves a part of the screen, or zooms by up to four; now and then goes elsewhere at another zoom. */
  move() {
    const whole = this.span.end_ns - this.span.start_ns;
    const what = this.next();
    if (what < 0.1) {
      // Between the whole run and a microsecond a pixel, all zooms alike.
      this.ns_per_px = 1000 * (this.widest / 1000) ** this.next();
      this.start_ns = this.next() * whole;
    } else if (what < 0.4) {
      const middle = this.start_ns + (WIDTH_PX / 2) * this.ns_per_px;
      this.ns_per_px = Math.min(Math.max(this.ns_per_px * 4 ** (2 * this.next() - 1), 100), this.widest);
      this.start_ns = middle - (WIDTH_PX / 2) * this.ns_per_px;
    } else this.start_ns += (this.next() * 2 - 1) * WIDTH_PX * this.ns_per_px;
    this.start_ns = Math.min(Math.max(this.start_ns, 0), Math.max(whole - WIDTH_PX * this.ns_per_px, 0));
  }

  /** What the page asks for here. */
  tiles() {
    const level = Math.max(Math.round(Math.log2(this.ns_per_px)), 0);
    const tile_ns = BINS * 2 ** level;
    const first = Math.floor(this.start_ns / tile_ns);
    const last = Math.ceil(Math.min(this.start_ns + WIDTH_PX * this.ns_per_px, this.span.end_ns + 1) / tile_ns) - 1;
    const count = Math.max(last - first + 1, 1);
    const most = Math.max(Math.floor(BLOCKS / count), 1);
    const paths = [];
    for (let at = 0; at < this.rows.length; at += most) {
      const rows = this.rows.slice(at, at + most).join();
      paths.push(`runs/0/tiles?v=${this.version}&rows=${rows}&level=${level}&first=${first}&count=${count}`);
    }
    return paths;
  }
}
