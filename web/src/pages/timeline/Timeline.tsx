import { computed } from "@preact/signals";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { bodyOf } from "../../api/client";
import type { ErrorBody } from "../../api/types";
import type { TimelineInfo } from "../../canvas/model";
import type { Elements } from "../../canvas/surface";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { CanvasFrame } from "../../components/timeline-shared/CanvasFrame";
import { Requests } from "../../components/timeline-shared/requests";
import { param } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { TimelineController } from "./controller";
import { FindTrack } from "./FindTrack";
import { Panel, type PanelTab } from "./Panel";
import { numberOf, Steps } from "./steps";
import { Toolbar } from "./Toolbar";

const version = computed(() => detail.value?.version ?? 0);
const requests = computed(() => new Requests(runId.value, version.value));

/** Everything that happened, by rank, device and thread, over time. */
export default function TimelinePage() {
  return <Loaded requests={requests.value} />;
}

/** The rows of one version of a run; while they load, those of the version before stay. */
function Loaded({ requests }: { requests: Requests }) {
  const [info, setInfo] = useState<{ requests: Requests; info: TimelineInfo; steps: Steps } | null>(null);
  const [error, setError] = useState<ErrorBody | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    setError(null);
    const steps = new Steps(requests.steps, abort.signal);
    // A step that was chosen is where the timeline begins.
    const [rank, step] = [numberOf(param("rank")), param("step")];
    const begin = step === undefined ? null : steps.load(rank === null ? { step } : { rank });
    Promise.all([requests.info(abort.signal), begin]).then(
      ([info]) => setInfo({ requests, info, steps }),
      (error: unknown) => {
        if (!abort.signal.aborted) setError(bodyOf(error));
      },
    );
    return () => abort.abort();
  }, [requests]);

  const controller = useMemo(() => info && new TimelineController(info.info, info.steps, info.requests), [info]);
  if (error) return <ErrorNotice error={error} onRetry={() => location.reload()} />;
  if (!controller) return <Loading what="Laying out the timeline…" />;
  if (controller.rows.groups.length === 0)
    return <Empty>Nothing with a duration was recorded: there is no timeline.</Empty>;
  // A run that is read again keeps its canvas, and with it the focus and how far it is scrolled.
  return <Stage key={controller.requests.run} controller={controller} />;
}

/** The canvas with what stands around it. */
function Stage({ controller }: { controller: TimelineController }) {
  const search = useRef<HTMLInputElement>(null);
  const [isFinding, setFinding] = useState(false);
  const [tab, setTab] = useState<PanelTab>("slice");
  const draw = useCallback(
    (elements: Elements) =>
      controller.attach(elements, {
        focusSearch: () => search.current?.focus(),
        findTrack: () => setFinding(true),
        showTab: setTab,
      }),
    [controller],
  );
  return (
    <div class="timeline">
      <h1 class="hidden">Timeline</h1>
      <Toolbar controller={controller} search={search} onFind={() => setFinding(true)} onList={() => setTab("list")} />
      <CanvasFrame
        state={controller.canvas}
        draw={draw}
        label="Timeline. Full stop and comma go from slice to slice, the arrow keys move, L lists what is shown."
        mapLabel="The whole run, and which part of it is shown"
      />
      <Panel controller={controller} tab={tab} onTab={setTab} />
      <p class="hidden" aria-live="polite">
        {controller.selection.announcement.value}
      </p>
      <FindTrack controller={controller} isOpen={isFinding} onClose={() => setFinding(false)} />
    </div>
  );
}
