// From which step on timelines are aligned, and what they show at first.

import type { StepOfRun } from "../../api/types";
import { seenFrom, unionOf } from "../../canvas/linked";
import { around, type Span } from "../../canvas/view";

const spanOf = (step: StepOfRun): Span => ({ start_ns: Number(step.start_ns), end_ns: Number(step.end_ns) });

/** The step with this number; unasked the first complete one. */
export function stepAt(steps: readonly StepOfRun[], number: string | undefined): StepOfRun | null {
  const asked = steps.find((step) => String(step.number) === number);
  return asked ?? steps.find((step) => step.is_complete) ?? steps[0] ?? null;
}

/** Both steps from their start to the end of the longer one; without steps, all of `spans`. */
export function firstView(steps: readonly [StepOfRun | null, StepOfRun | null], spans: readonly [Span, Span]): Span {
  const seen = steps.map((step, at) => {
    const span = step ? spanOf(step) : (spans[at] as Span);
    return seenFrom(span, span.start_ns);
  });
  return around(unionOf(seen), 0.02);
}

/** Where a timeline's time begins: at the step, or at the start of the run. */
export const originOf = (step: StepOfRun | null, span: Span): number => (step ? Number(step.start_ns) : span.start_ns);
