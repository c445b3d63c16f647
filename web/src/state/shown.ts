// What charts over time show, and the steps that are marked on them.

import type { Num, RunDetail, StepOfRun } from "../api/types";
import type { Span } from "../canvas/view";

interface Chosen {
  readonly step: string | undefined;
  readonly window: { readonly start_ns: string; readonly end_ns: string } | null;
}

/**
 * The time to show: the window or the step that was chosen, both where both were, else all of the run. `own` are the steps of
 * the rank that is shown.
 */
export function shownSpan(detail: Pick<RunDetail, "span">, own: readonly StepOfRun[], chosen: Chosen): Span {
  const all = detail.span ? spanOf(detail.span.start_ns, detail.span.end_ns) : { start_ns: 0, end_ns: 1 };
  const steps = chosen.step === undefined ? [] : own.filter(isStep(chosen.step));
  const ofStep = steps.length > 0 ? hull(steps.map((step) => spanOf(step.start_ns, step.end_ns))) : all;
  const window = chosen.window ? spanOf(BigInt(chosen.window.start_ns), BigInt(chosen.window.end_ns)) : all;
  const both = { start_ns: Math.max(ofStep.start_ns, window.start_ns), end_ns: Math.min(ofStep.end_ns, window.end_ns) };
  return both.end_ns > both.start_ns ? both : all;
}

/** The steps of a rank as marks with their numbers; none where nothing marks steps and the whole run is one. */
export function stepMarks(own: readonly StepOfRun[]) {
  const steps = own.filter((step) => step.source !== "whole");
  return steps.map((step) => ({
    ...spanOf(step.start_ns, step.end_ns),
    words: `step ${step.number}`,
  }));
}

const isStep = (number: string) => (step: StepOfRun) => String(step.number) === number;
const spanOf = (start_ns: Num, end_ns: Num): Span => ({ start_ns: Number(start_ns), end_ns: Number(end_ns) });
const hull = (spans: readonly Span[]): Span => ({
  start_ns: spans.reduce((least, span) => Math.min(least, span.start_ns), Number.POSITIVE_INFINITY),
  end_ns: spans.reduce((most, span) => Math.max(most, span.end_ns), Number.NEGATIVE_INFINITY),
});
