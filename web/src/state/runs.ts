// The runs that the server has, the one that is shown, and the catalogue of analyses.

import { computed, effect, signal } from "@preact/signals";
import { ApiError, ask, bodyOf, onOtherToken, REFUSED, withToken } from "../api/client";
import { runPath } from "../api/paths";
import type { About, AnalysisInfo, ErrorBody, RunDetail, RunSummary } from "../api/types";
import { param, setParams } from "./route";
import { isLasting, runNamed } from "./run_names";

/** Every run; null until the server has answered. */
export const runs = signal<readonly RunSummary[] | null>(null);

/** Why the server cannot be asked at all. */
export const serverError = signal<ErrorBody | null>(null);

/** True when the server wants another token than this tab has. */
export const isRefused = signal(false);

/** True while changes of runs are not heard of. */
export const isCutOff = signal(false);

/** The catalogue, by name. */
export const analyses = signal<ReadonlyMap<string, AnalysisInfo>>(new Map());

/** What the server says of itself; null until it has. */
export const about = signal<About | null>(null);

/** The run that is shown, as the list has it. */
export const run = computed(() => runNamed(runs.value ?? [], param("run") ?? "0"));

/** The number of the run that is shown: good for as long as the server lives. -1 where there is none. */
export const runId = computed(() => run.value?.id ?? -1);

/** What names a run in links. */
export const keyOf = (id: number): string => runs.value?.find((run) => run.id === id)?.key ?? String(id);

/** What the run that is shown is; null while it loads. */
export const detail = signal<RunDetail | null>(null);

/** Why it cannot be shown. */
export const detailError = signal<ErrorBody | null>(null);

/** How long after an answer that makes no sense the list of runs is asked for again. */
const ASK_AGAIN_MS = 5000;

/** Asks for everything that the shell needs, and follows changes. */
export async function followRuns(): Promise<void> {
  try {
    const [said, list, catalogue] = await Promise.all([
      ask<About>("api/about"),
      ask<readonly RunSummary[]>("api/runs"),
      ask<readonly AnalysisInfo[]>("api/analyses"),
    ]);
    about.value = said;
    runs.value = list;
    analyses.value = new Map(catalogue.map((analysis) => [analysis.name, analysis]));
  } catch (error) {
    refuse(error);
    return;
  }
  followEvents();
  followDetail();
  nameRun();
}

/** Shows why the server answers nothing; a token that another tab has may change that. */
function refuse(error: unknown): void {
  serverError.value = bodyOf(error);
  isRefused.value = error instanceof ApiError && error.status === REFUSED;
  if (isRefused.value) onOtherToken(() => location.reload());
}

/** Where there are several runs, the address names the one that is shown by what stays when others are added. */
function nameRun(): void {
  effect(() => {
    const shown = run.value;
    if (shown && (runs.value?.length ?? 0) > 1 && !isLasting(param("run"))) {
      setParams({ run: shown.key }, { replace: true });
    }
  });
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
    // The browser tries again by itself, unless it was told no: then the server is another than before.
    if (events.readyState !== EventSource.CLOSED) return;
    ask<readonly RunSummary[]>("api/runs").then(
      (list) => {
        runs.value = list;
        followEvents();
      },
      (error: unknown) => {
        if (error instanceof ApiError && error.status === REFUSED) refuse(error);
        else setTimeout(followEvents, ASK_AGAIN_MS);
      },
    );
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
    // The server lets go of a run that nobody asked for in a while, and reads it again at the next request.
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
