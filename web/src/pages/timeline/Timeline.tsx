import { computed, useSignalEffect } from "@preact/signals";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { bodyOf } from "../../api/client";
import type { ErrorBody } from "../../api/types";
import type { TimelineInfo } from "../../canvas/model";
import type { Elements } from "../../canvas/surface";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { CanvasFrame } from "../../components/timeline-shared/CanvasFrame";
import { loadingWords, Requests } from "../../components/timeline-shared/requests";
import { chosenRank, shownRank } from "../../state/rank";
import { param } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { address } from "./address";
import { TimelineController } from "./controller";
import { FindTrack } from "./FindTrack";
import { OnlyCollectives } from "./OnlyCollectives";
import { Panel, type PanelTab } from "./Panel";
import { place, sizeOf } from "./panel_place";
import { Splitter } from "./Splitter";
import { Steps } from "./steps";
import { Toolbar } from "./Toolbar";

const version = computed(() => detail.value?.version ?? 0);
const requests = computed(() => new Requests(runId.value, version.value, shownRank.value));

/** Everything that happened, by rank, device and thread, over time. */
export default function TimelinePage() {
  // A link to a range begins with its sums.
  const [tab, setTab] = useState<PanelTab>(() => (address.range.peek() && !address.at.peek() ? "range" : "slice"));
  // One to a slice that is followed here shows the slice.
  useSignalEffect(() => {
    if (address.at.value) setTab((now) => (now === "range" ? "slice" : now));
  });
  // Nothing of the timeline of one rank stays when that of another is shown.
  return <Loaded key={requests.value.ofRank} requests={requests.value} tab={tab} onTab={setTab} />;
}

interface Tabs {
  readonly tab: PanelTab;
  readonly onTab: (tab: PanelTab | ((now: PanelTab) => PanelTab)) => void;
}

/** The rows of one version of a run; while they load, those of the version before stay. */
function Loaded({ requests, ...tabs }: Tabs & { requests: Requests }) {
  const [info, setInfo] = useState<{ requests: Requests; info: TimelineInfo; steps: Steps } | null>(null);
  const [error, setError] = useState<ErrorBody | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    setError(null);
    const steps = new Steps(requests.steps, abort.signal);
    // A step that was chosen is where the timeline begins.
    const [rank, step] = [chosenRank.peek(), param("step")];
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
  if (error || !controller || controller.rows.groups.length === 0) {
    return (
      <>
        {(error || controller) && <h1 class="hidden">Timeline</h1>}
        <OnlyCollectives />
        {error ? (
          <ErrorNotice error={error} onRetry={() => location.reload()} />
        ) : controller ? (
          <Empty>Nothing with a duration was recorded: there is no timeline.</Empty>
        ) : (
          <Loading what={loadingWords(requests)} />
        )}
      </>
    );
  }
  // A run that is read again keeps its canvas, and with it the focus and how far it is scrolled.
  return <Stage key={controller.requests.run} controller={controller} {...tabs} />;
}

/** The canvas with what stands around it. */
function Stage({ controller, tab, onTab }: Tabs & { controller: TimelineController }) {
  const search = useRef<HTMLInputElement>(null);
  const [isFinding, setFinding] = useState(false);
  const draw = useCallback(
    (elements: Elements) =>
      controller.attach(elements, {
        focusSearch: () => search.current?.focus(),
        findTrack: () => setFinding(true),
        // Another range does not take away the events of the one before: they become those of the new one.
        showTab: (next) => onTab((now) => (next === "range" && now === "events" ? now : next)),
      }),
    [controller, onTab],
  );
  const { isRight, isShut } = place.value;
  const size = isShut ? "auto" : `${sizeOf(place.value)}px`;
  return (
    <div
      class={`timeline${isRight ? " panel-right" : ""}${isShut ? " panel-shut" : ""}`}
      style={{ "--panel-size": size }}
    >
      <h1 class="hidden">Timeline</h1>
      <Toolbar controller={controller} search={search} onFind={() => setFinding(true)} onList={() => onTab("list")} />
      <CanvasFrame
        state={controller.canvas}
        draw={draw}
        label="Timeline. Full stop and comma go from slice to slice, the arrow keys move, L lists what is shown."
        mapLabel="The whole run, and which part of it is shown"
      />
      {!isShut && <Splitter />}
      <Panel controller={controller} tab={tab} onTab={onTab} />
      <p class="hidden" aria-live="polite">
        {controller.selection.announcement.value}
      </p>
      <FindTrack controller={controller} isOpen={isFinding} onClose={() => setFinding(false)} />
    </div>
  );
}
