import { expect, test } from "vitest";
import { Linked, type Member, placedAt, seenFrom, unionOf } from "./linked";
import { Motion } from "./motion";
import type { Span } from "./view";

/** A timeline as far as it matters here; what it shows is told as it would be in its next frame. */
class Shown implements Member {
  readonly motion: Motion;
  wasTold = 0;
  constructor(view: Span, span: Span) {
    this.motion = new Motion(view, span, () => true);
  }
  go(view: Span): void {
    this.wasTold++;
    this.motion.to(view, true);
  }
}

const A: Span = { start_ns: 0, end_ns: 1_000_000 };
const B: Span = { start_ns: 0, end_ns: 3_000_000 };

test("what one shows the other shows from its own origin, and no echo comes back", () => {
  const linked = new Linked({ start_ns: 0, end_ns: 100 });
  const [a, b] = [new Shown(A, A), new Shown(B, B)];
  linked.attach(a, 400_000, A);
  linked.attach(b, 2_000_000, B);
  expect(b.motion.view).toEqual({ start_ns: 2_000_000, end_ns: 2_000_100 });
  a.go({ start_ns: 399_000, end_ns: 401_000 });
  linked.follow(a, a.motion.view);
  expect(b.motion.view).toEqual({ start_ns: 1_999_000, end_ns: 2_001_000 });
  const told = a.wasTold;
  linked.follow(b, b.motion.view);
  expect(a.wasTold).toBe(told);
  b.go({ start_ns: 2_500_000, end_ns: 2_500_300 });
  linked.follow(b, b.motion.view);
  expect(a.motion.view).toEqual({ start_ns: 900_000, end_ns: 900_300 });
});

test("each can be moved as far as the other reaches", () => {
  const linked = new Linked({ start_ns: 0, end_ns: 100 });
  const [a, b] = [new Shown(A, A), new Shown(B, B)];
  linked.attach(a, 0, A);
  linked.attach(b, 2_000_000, B);
  // Beyond the end of the first run and before its start there is something of the second one.
  b.go({ start_ns: 0, end_ns: 1000 });
  linked.follow(b, b.motion.view);
  expect(a.motion.view).toEqual({ start_ns: -2_000_000, end_ns: -1_999_000 });
  linked.detach(b);
  linked.follow(a, { start_ns: 5, end_ns: 50 });
  expect(b.motion.view).toEqual({ start_ns: 0, end_ns: 1000 });
});

test("a window comes back from its origin", () => {
  expect(placedAt(seenFrom(A, 123), 123)).toEqual(A);
  expect(unionOf([seenFrom(A, 10), seenFrom(B, 2_000_000)])).toEqual({ start_ns: -2_000_000, end_ns: 1_000_000 });
});
