import { useEffect, useMemo, useState } from "preact/hooks";
import { bodyOf } from "../../api/client";
import type { ErrorBody, RunDetail, StepOfRun } from "../../api/types";
import { Linked } from "../../canvas/linked";
import type { TimelineInfo } from "../../canvas/model";
import { Choices } from "../../components/Choices";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { loadingWords, Requests } from "../../components/timeline-shared/requests";
import { isCondensed, rankShown } from "../../state/rank";
import { param, setParams } from "../../state/route";
import { useSteps } from "../../state/steps";
import { parseSpan } from "../../state/timeline_params";
import type { Compared } from "./asked";
import { LaneView } from "./LaneView";
import type { LaneOf } from "./lane";
import { firstView, originOf, stepAt } from "./steps";

/** A choice of more steps than this is typed, not picked. */
const MAX_OPTIONS = 300;

interface Loaded {
  readonly requests: Requests;
  readonly info: TimelineInfo;
}

/** The timelines of both, one above the other, aligned at the start of a step. */
export function Timelines({ compared }: { compared: Compared }) {
  const { sides, details, names } = compared;
  const [a, b] = [useTimeline(details[0], sides.a.rank), useTimeline(details[1], sides.b.rank)];
  const [before, now] = [useStepsOf(compared, 0), useStepsOf(compared, 1)];
  const error = a.error ?? b.error ?? before.error ?? now.error;
  const isThere = a.loaded && b.loaded && before.steps && now.steps;
  const waitedFor = a.loaded ? b.requests : a.requests;
  const condensed = names.filter((_, at) => isCondensed(details[at] ?? null, at === 0 ? sides.a.rank : sides.b.rank));
  return (
    <section aria-label="Timelines">
      <h2>Timelines, aligned at a step</h2>
      {error && <ErrorNotice error={error} />}
      {!error && !isThere && <Loading what={loadingWords(waitedFor)} />}
      {condensed.map((name, at) => (
        <p key={at}>
          Only collectives and device work of all ranks of {name} are shown; choose a rank above to see all of its
          events.
        </p>
      ))}
      {a.loaded && b.loaded && before.steps && now.steps && (
        <Pair compared={compared} timelines={[a.loaded, b.loaded]} steps={[before.steps, now.steps]} />
      )}
    </section>
  );
}

interface Timelined {
  readonly requests: Requests;
  readonly loaded: Loaded | null;
  readonly error: ErrorBody | null;
}

/** The rows of a run's timeline, or of a rank's. */
function useTimeline(detail: RunDetail, rank: number | null): Timelined {
  const { id, version } = detail;
  const ofRank = rankShown(detail, rank);
  const requests = useMemo(() => new Requests(id, version, ofRank), [id, version, ofRank]);
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [error, setError] = useState<ErrorBody | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    setError(null);
    requests.info(abort.signal).then(
      (info) => setLoaded({ requests, info }),
      (error: unknown) => {
        if (!abort.signal.aborted) setError(bodyOf(error));
      },
    );
    return () => abort.abort();
  }, [requests]);
  return { requests, loaded: loaded?.requests === requests ? loaded : null, error };
}

/** The steps of a side's rank, or of the first rank that has any. */
function useStepsOf({ sides, details }: Compared, which: 0 | 1) {
  const detail = details[which];
  const rank = (which === 0 ? sides.a : sides.b).rank ?? detail.steps.first_rank;
  const answer = useSteps(detail, rank);
  return { steps: rank === null ? [] : answer.value, error: answer.state === "failed" ? answer.error : null };
}

interface PairProps {
  readonly compared: Compared;
  readonly timelines: readonly [Loaded, Loaded];
  readonly steps: readonly [readonly StepOfRun[], readonly StepOfRun[]];
}

function Pair({ compared, timelines, steps }: PairProps) {
  const { sides, details, names } = compared;
  const at = [stepAt(steps[0], param("a-step")), stepAt(steps[1], param("b-step"))] as const;
  const spans = [timelines[0].info.span, timelines[1].info.span] as const;
  const origins = [originOf(at[0], spans[0]), originOf(at[1], spans[1])] as const;
  const key = JSON.stringify([origins, at.map((step) => step?.end_ns), sides, details.map(({ version }) => version)]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key has everything that lanes are made of
  const lanes = useMemo(() => {
    const begin = firstView(at, spans);
    const linked = new Linked(parseSpan(param("view")) ?? begin);
    return ([0, 1] as const).map((which): LaneOf => {
      const side = which === 0 ? "a" : "b";
      const { requests, info } = timelines[which];
      const shared = { side, rank: sides[side].rank, steps: steps[which], begin, linked } as const;
      return { ...shared, requests, info, origin_ns: origins[which] };
    });
  }, [key]);
  if (timelines.some(({ info }) => info.groups.length === 0)) {
    return <Empty>One of them has nothing with a duration: there is no timeline of it.</Empty>;
  }
  return (
    <>
      <p class="dim">
        Both move together; time counts from the start of each step. W and S zoom, A and D move, F shows the steps; drag
        over rows to look closer, click a slice to go to it.
      </p>
      <div class="choices">
        {at[0] && <PickStep label="Step before" name="a-step" step={at[0]} steps={steps[0]} />}
        {at[1] && <PickStep label="Step now" name="b-step" step={at[1]} steps={steps[1]} />}
      </div>
      {lanes.map((lane, which) => (
        <LaneView key={`${which} ${key}`} name={`${which === 0 ? "Before" : "Now"}: ${names[which]}`} of={lane} />
      ))}
    </>
  );
}

interface PickProps {
  readonly label: string;
  readonly name: string;
  readonly step: StepOfRun;
  readonly steps: readonly StepOfRun[];
}

/** The step at which a timeline is aligned. */
function PickStep({ label, name, step, steps }: PickProps) {
  if (steps.length > MAX_OPTIONS) {
    return (
      <label class="choice">
        {label}{" "}
        <input
          type="text"
          inputMode="numeric"
          size={8}
          value={String(step.number)}
          onChange={(event) => setParams({ [name]: event.currentTarget.value.trim() || null })}
        />
      </label>
    );
  }
  const first = stepAt(steps, undefined);
  const ordered = [first, ...steps.filter((step) => step !== first)].filter((step) => step !== null);
  const options = ordered.map(({ number, is_complete }) => {
    return [String(number), `${number}${is_complete ? "" : " (cut)"}`] as const;
  });
  return <Choices label={label} name={name} value={String(step.number)} options={options} />;
}
