// The steps that the timeline marks and goes to, asked for rank by rank.

import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { StepOfRun } from "../../api/types";
import type { Span } from "../../canvas/view";

/** Steps of a rank, or of all ranks with a number. */
interface Of {
  readonly rank?: number;
  readonly step?: string;
}

/** Asks the server: `Requests.steps`. */
type RequestSteps = (of: Of, signal: AbortSignal) => Promise<readonly StepOfRun[]>;

/** Steps as far as they were requested; an effect that reads some that are not there yet runs again when they are. */
export class Steps {
  private readonly known = new Map<string, Signal<readonly StepOfRun[] | undefined>>();

  constructor(
    private readonly request: RequestSteps,
    private readonly signal: AbortSignal,
  ) {}

  /** The steps of a rank; undefined while they are not known. */
  ofRank(rank: number): readonly StepOfRun[] | undefined {
    return this.at({ rank }).value;
  }

  /** The step of a rank, or of the first rank that has it; null where none is, undefined while that is not known. */
  find(rank: number | null, number: string): Span | null | undefined {
    const steps = this.at(rank === null ? { step: number } : { rank }).value;
    if (steps === undefined) return undefined;
    const step = steps.find((step) => String(step.number) === number);
    return step ? { start_ns: Number(step.start_ns), end_ns: Number(step.end_ns) } : null;
  }

  /** Asks for steps that are wanted first. */
  async load(of: Of): Promise<void> {
    const steps = signal<readonly StepOfRun[] | undefined>(undefined);
    this.known.set(JSON.stringify(of), steps);
    // What the address has may be no number: then no step has it.
    const isAskable = of.step === undefined || /^-?\d{1,18}$/.test(of.step);
    steps.value = isAskable ? await this.request(of, this.signal) : [];
  }

  private at(of: Of): ReadonlySignal<readonly StepOfRun[] | undefined> {
    const key = JSON.stringify(of);
    // Without an answer no steps are marked; everything else on the timeline is asked for by itself.
    if (!this.known.has(key)) this.load(of).catch(() => {});
    return this.known.get(key) as Signal<readonly StepOfRun[] | undefined>;
  }
}
