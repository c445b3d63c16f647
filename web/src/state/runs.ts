// The runs that the server has, the one that is shown, and the catalogue of analyses.

import { computed, effect, signal } from "@preact/signals";
import { ask, bodyOf, withToken } from "../api/client";
import { runPath } from "../api/paths";
import type { AnalysisInfo, ErrorBody, RunDetail, RunSummary } from "../api/types";
import { runId } from "./place";

/** Every run; null until the server has answered. */
export const runs = signal<readonly RunSummary[] | null>(null);

/** Why the server cannot be asked at all. */
export const serverError = signal<ErrorBody | null>(null);

/** True while changes of runs are not heard of. */
export const isCutOff = signal(false);

/** The catalogue, by name. */
export const analyses = signal<ReadonlyMap<string, AnalysisInfo>>(new Map());

/** The run that is shown, as the list has it. */
export const run = computed(() => runs.value?.find((run) => run.id === runId.value) ?? null);

/** What the run that is shown is; null while it loads. */
export const detail = signal<RunDetail | null>(null);

/** Why it cannot be shown. */
export const detailError = signal<ErrorBody | null>(null);

/** Asks for everything that the shell needs, and follows changes. */
export async function followRuns(): Promise<void> {
  try {
    const [list, catalogue] = await Promise.all([
      ask<readonly RunSummary[]>("api/runs"),
      ask<readonly AnalysisInfo[]>("api/analyses"),
    ]);
    runs.value = list;
    analyses.value = new Map(catalogue.map((analysis) => [analysis.name, analysis]));
  } catch (error) {
    serverError.value = bodyOf(error);
    return;
  }
  followEvents();
  followDetail();
}

function followEvents(): void {
  const events = new EventSource(withToken("api/events"));
  const take = (event: MessageEvent<string>) => {
    isCutOff.value = false;
    runs.value = JSON.parse(event.data) as readonly RunSummary[];
  };
  events.onmessage = take;
  events.addEventListener("runs", take);
  events.onopen = () => {
    isCutOff.value = false;
  };
  events.onerror = () => {
    isCutOff.value = true;
  };
}

/** Asks anew whenever another run is shown, or this one has another version or has become ready. */
function followDetail(): void {
  const key = computed(() => {
    const known = run.value;
    return known ? `${known.id} ${known.version} ${known.state}` : null;
  });
  let shown = -1;
  effect(() => {
    if (key.value === null) return;
    const id = runId.peek();
    // What nobody asked for in a while the server lets go of, and reads again for whoever asks next.
    if (id === shown && run.peek()?.state === "waiting" && detail.peek()) return;
    if (id !== shown) detail.value = null;
    shown = id;
    detailError.value = null;
    const abort = new AbortController();
    // A run that nobody has asked for yet may not be loading at all: asking for it makes the server begin.
    ask<RunDetail>(runPath(id), abort.signal).then(
      (answer) => {
        detail.value = answer;
        detailError.value = null;
      },
      (error: unknown) => {
        if (!abort.signal.aborted) detailError.value = bodyOf(error);
      },
    );
    return () => abort.abort();
  });
}
