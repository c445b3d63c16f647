// Timelines that move together: each shows the same window as seen from its own origin, such as the start of a step.

import type { Span } from "./view";

/** What is linked; a `Timeline` is. */
export interface Member {
  readonly motion: { limit(span: Span): void };
  go(view: Span, isAtOnce?: boolean): void;
}

/** Windows that differ by less than this part of their length are the same: sums of doubles are not exact. */
const SAME = 1e-6;

/** A window as it is seen from an origin. */
export const seenFrom = (span: Span, origin_ns: number): Span => ({
  start_ns: span.start_ns - origin_ns,
  end_ns: span.end_ns - origin_ns,
});

/** The other way round. */
export const placedAt = (span: Span, origin_ns: number): Span => seenFrom(span, -origin_ns);

/** The window that holds all of them. */
export function unionOf(spans: readonly Span[]): Span {
  return {
    start_ns: Math.min(...spans.map((span) => span.start_ns)),
    end_ns: Math.max(...spans.map((span) => span.end_ns)),
  };
}

export class Linked {
  private readonly members: { readonly member: Member; readonly origin_ns: number; readonly span: Span }[] = [];

  /** `shown` is the window that all of them show now, from their origins. */
  constructor(private shown: Span) {}

  /** Another timeline, of a run that takes `span`. It can be moved as far as any of them. */
  attach(member: Member, origin_ns: number, span: Span): void {
    this.members.push({ member, origin_ns, span });
    const limits = unionOf(this.members.map((each) => seenFrom(each.span, each.origin_ns)));
    for (const each of this.members) each.member.motion.limit(placedAt(limits, each.origin_ns));
    // A timeline that was made before there was room for all of it goes there now.
    member.go(placedAt(this.shown, origin_ns), true);
  }

  /** All of them show this window, as seen from their origins. */
  show(next: Span): void {
    this.shown = next;
    for (const { member, origin_ns } of this.members) member.go(placedAt(next, origin_ns), true);
  }

  detach(member: Member): void {
    const at = this.members.findIndex((each) => each.member === member);
    if (at >= 0) this.members.splice(at, 1);
  }

  /** A timeline shows another window now: all others do, too. */
  follow(member: Member, view: Span): void {
    const moved = this.members.find((each) => each.member === member);
    if (!moved) return;
    const next = seenFrom(view, moved.origin_ns);
    const near = (next.end_ns - next.start_ns) * SAME;
    const { shown } = this;
    if (Math.abs(next.start_ns - shown.start_ns) <= near && Math.abs(next.end_ns - shown.end_ns) <= near) return;
    this.shown = next;
    for (const { member, origin_ns } of this.members) {
      if (member !== moved.member) member.go(placedAt(next, origin_ns), true);
    }
  }
}
