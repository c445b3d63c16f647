// The steps of a run: which numbers there are, and the steps of a rank once somebody draws them. A run of many ranks has
// too many of them to ask for all.

import { runPath, withQuery } from "../api/paths";
import type { RunDetail, StepOfRun, StepsOfRun } from "../api/types";
import { type Answer, useAnswer } from "./answer";

/** Where the server has the steps of a rank, those with a number, or both. */
export function stepsPath(run: number, of: { readonly rank?: number | string; readonly step?: string }): string {
  return withQuery(runPath(run, "steps"), [
    ["rank", of.rank],
    ["step", of.step],
  ]);
}

/** The steps of a rank; nothing is asked without one. While another reading of the run loads, those of the one before. */
export function useSteps(
  detail: Pick<RunDetail, "id" | "version"> | null,
  rank: number | string | null | undefined,
): Answer<readonly StepOfRun[]> {
  const path = detail === null || rank === null || rank === undefined ? null : stepsPath(detail.id, { rank });
  const answer = useAnswer<readonly StepOfRun[]>(path, detail?.version ?? 0);
  const isOfOther = answer.value?.some((step) => String(step.rank) !== String(rank)) ?? false;
  return answer.state === "loading" && isOfOther ? { state: "loading", value: undefined } : answer;
}

/** How many numbers the steps have. */
export function countOfNumbers({ numbers }: Pick<StepsOfRun, "numbers">): number {
  return numbers.reduce((sum, [first, last]) => sum + Number(BigInt(last) - BigInt(first)) + 1, 0);
}

/** The numbers of steps from the place `from` on; at most `most` of them. */
export function numbersFrom({ numbers }: Pick<StepsOfRun, "numbers">, from: number, most: number): string[] {
  const found: string[] = [];
  let before = 0;
  for (const [first, last] of numbers) {
    const size = Number(BigInt(last) - BigInt(first)) + 1;
    const begin = Math.max(0, from - before);
    for (let at = begin; at < size && found.length < most; at++) found.push(String(BigInt(first) + BigInt(at)));
    before += size;
  }
  return found;
}

/** At which place a number stands; -1 where no step has it. */
export function placeOfNumber({ numbers }: Pick<StepsOfRun, "numbers">, text: string | undefined): number {
  if (text === undefined || !/^-?\d{1,19}$/.test(text)) return -1;
  const number = BigInt(text);
  let before = 0;
  for (const [first, last] of numbers) {
    if (number >= first && number <= last) return before + Number(number - BigInt(first));
    before += Number(BigInt(last) - BigInt(first)) + 1;
  }
  return -1;
}
