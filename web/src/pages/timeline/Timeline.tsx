import { computed, untracked } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { bodyOf } from "../../api/client";
import type { ErrorBody } from "../../api/types";
import { commandOf, heldOf } from "../../canvas/keys";
import { followMinimap } from "../../canvas/minimap_pointer";
import type { TimelineInfo } from "../../canvas/model";
import { followPointer } from "../../canvas/pointer";
import { Timeline as Canvas } from "../../canvas/timeline";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { followColours } from "../../components/timeline-shared/colours";
import { Labels } from "../../components/timeline-shared/Labels";
import { Requests } from "../../components/timeline-shared/requests";
import { Tooltip } from "../../components/timeline-shared/Tooltip";
import { isTyping } from "../../components/typing";
import { param } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { Explore } from "./explore";
import { FindTrack } from "./FindTrack";
import { Panel, type PanelTab } from "./Panel";
import { numberOf, Steps } from "./steps";
import { Toolbar } from "./Toolbar";
import "../../components/timeline-shared/timeline.css";

const version = computed(() => detail.value?.version ?? 0);
const asked = computed(() => new Requests(runId.value, version.value));

/** Everything that happened, by rank, device and thread, over time. */
export default function TimelinePage() {
  return <Loaded requests={asked.value} />;
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

  const explore = useMemo(() => info && new Explore(info.info, info.steps, info.requests), [info]);
  if (error) return <ErrorNotice error={error} onRetry={() => location.reload()} />;
  if (!explore) return <Loading what="Laying out the timeline…" />;
  if (explore.rows.groups.length === 0)
    return <Empty>Nothing with a duration was recorded: there is no timeline.</Empty>;
  // A run that is read again keeps its canvas, and with it the focus and how far it is scrolled.
  return <Stage key={explore.requests.run} explore={explore} />;
}

/** The canvas with what stands around it. */
function Stage({ explore }: { explore: Explore }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const minimap = useRef<HTMLCanvasElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const [isFinding, setFinding] = useState(false);
  const [tab, setTab] = useState<PanelTab>("slice");
  const [drawn, setDrawn] = useState<Canvas | null>(null);

  useEffect(() => {
    if (!canvas.current || !minimap.current || !scroller.current || !spacer.current) return;
    const parts = {
      canvas: canvas.current,
      minimap: minimap.current,
      scroller: scroller.current,
      spacer: spacer.current,
    };
    const hearing = {
      onLines: (lines: Parameters<typeof setLines>[0], pinnedBottom: number) => setLines(lines, pinnedBottom),
      onRest: explore.onRest,
      onMoving: () => {
        explore.hovered.value = null;
      },
      onTrouble: (error: unknown) => {
        explore.trouble.value = bodyOf(error);
      },
      onBehind: (isBehind: boolean) => {
        explore.isBehind.value = isBehind;
      },
    };
    const setLines = (lines: typeof explore.rows.lines.value.lines, pinnedBottom: number) => {
      explore.rows.lines.value = { lines, pinnedBottom };
    };
    const timeline = new Canvas(
      parts,
      explore.requests.canvas,
      hearing,
      explore.info.span,
      explore.view.peek() ?? explore.info.focus,
    );
    explore.join(timeline);
    setDrawn(timeline);
    const stopPointer = followPointer(parts.canvas, timeline, {
      onHover: (hovered) => {
        explore.hovered.value = hovered;
      },
      onClick: (hit) => {
        parts.canvas.focus({ preventScroll: true });
        if (hit?.slice !== null && hit !== null) {
          explore.select(hit.slice);
          setTab("slice");
        } else explore.clear();
      },
      onDoubleClick: (hit) =>
        hit ? explore.fitTo({ start_ns: hit.start_ns, end_ns: hit.start_ns + hit.dur_ns }) : explore.fit(),
      onRange: (range, rows, isDone) => {
        explore.setRange(range, rows, isDone);
        if (isDone) setTab("range");
      },
    });
    const stopMinimap = followMinimap(parts.minimap, timeline);
    // For measurements from outside: how long frames took.
    Object.assign(parts.canvas, { frames_ms: timeline.frames_ms });
    return () => {
      stopPointer();
      stopMinimap();
      explore.leave();
      timeline.dispose();
    };
  }, [explore]);

  useEffect(() => {
    if (!drawn) return;
    return followColours(drawn, () => untracked(() => explore.address.value.search.trim()));
  }, [drawn, explore]);

  useEffect(() => {
    if (!drawn) return;
    const motion = drawn.motion;
    const onDown = (event: KeyboardEvent) => {
      const target = event.target;
      if (event.defaultPrevented || isTyping(target) || document.querySelector("dialog[open]")) return;
      const isOnButton = target instanceof HTMLElement && target.closest("button, a, summary, [role=tab], td, th");
      const held = heldOf(event);
      if (held) {
        motion.press(held);
        drawn.redraw();
        event.preventDefault();
        return;
      }
      const command = commandOf(event);
      if (!command || (isOnButton && event.key.startsWith("Arrow"))) return;
      event.preventDefault();
      if (command === "fit") explore.fit();
      else if (command === "next") explore.step("after");
      else if (command === "previous") explore.step("before");
      else if (command === "parent") explore.parent();
      else if (command === "child") explore.child();
      else if (command === "flow-next") explore.flow("forwards");
      else if (command === "flow-previous") explore.flow("backwards");
      else if (command === "mark") explore.mark();
      else if (command === "search") search.current?.focus();
      else if (command === "find-track") setFinding(true);
      else if (command === "list") setTab("list");
      else explore.clear();
    };
    const onUp = (event: KeyboardEvent) => {
      const held = heldOf({ key: event.key, ctrlKey: false, metaKey: false, altKey: false });
      if (held) motion.release(held);
    };
    const onBlur = () => motion.releaseAll();
    addEventListener("keydown", onDown);
    addEventListener("keyup", onUp);
    addEventListener("blur", onBlur);
    return () => {
      removeEventListener("keydown", onDown);
      removeEventListener("keyup", onUp);
      removeEventListener("blur", onBlur);
    };
  }, [drawn, explore]);

  return (
    <div class="timeline">
      <h1 class="hidden">Timeline</h1>
      <Toolbar explore={explore} search={search} onFind={() => setFinding(true)} onList={() => setTab("list")} />
      {explore.trouble.value && <ErrorNotice error={explore.trouble.value} />}
      <canvas ref={minimap} class="timeline-map" role="img" aria-label="The whole run, and which part of it is shown" />
      <div class="timeline-scroll" ref={scroller}>
        <div class="timeline-stage">
          <Labels rows={explore.rows} />
          <div class="timeline-canvas">
            <canvas
              ref={canvas}
              tabIndex={0}
              role="application"
              aria-label="Timeline. Full stop and comma go from slice to slice, the arrow keys move, L lists what is shown."
              aria-busy={explore.isBehind.value}
            />
            <Tooltip hovered={explore.hovered.value} counter={(row) => explore.counter(row)} />
          </div>
        </div>
        <div ref={spacer} aria-hidden="true" />
      </div>
      <Panel explore={explore} tab={tab} onTab={setTab} />
      <p class="hidden" aria-live="polite">
        {explore.told.value}
      </p>
      <FindTrack explore={explore} isOpen={isFinding} onClose={() => setFinding(false)} />
    </div>
  );
}
