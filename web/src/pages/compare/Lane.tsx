import { effect } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { bodyOf } from "../../api/client";
import type { ErrorBody, StepOfRun } from "../../api/types";
import { ErrorNotice } from "../../components/Notice";
import { Alone } from "../../components/timeline/alone";
import { followColours } from "../../components/timeline/colours";
import { Labels } from "../../components/timeline/Labels";
import type { Requests } from "../../components/timeline/requests";
import { Rows } from "../../components/timeline/rows";
import { Tooltip } from "../../components/timeline/Tooltip";
import { formatNs } from "../../format/units";
import { allChosen, choose, chosen, hrefOf } from "../../state/place";
import { commandOf, heldOf } from "../../timeline/keys";
import { layoutOf } from "../../timeline/layout";
import { type Linked, placedAt, seenFrom } from "../../timeline/linked";
import { followMinimap } from "../../timeline/minimap_pointer";
import type { Slice, TimelineInfo } from "../../timeline/model";
import { formatSpan, formatTimeline, parseSpan } from "../../timeline/place";
import { followPointer, type Hovered } from "../../timeline/pointer";
import { Timeline as Canvas } from "../../timeline/timeline";
import { around, type Span } from "../../timeline/view";

interface Props {
  /** Tells this lane's choices in the address from those of the other. */
  readonly side: "a" | "b";
  readonly name: string;
  readonly rank: number | null;
  readonly requests: Requests;
  readonly info: TimelineInfo;
  readonly steps: readonly StepOfRun[];
  /** The start of the step, which the other lane has at the same place. */
  readonly origin_ns: number;
  /** What is shown at first, from the origin on. */
  readonly begin: Span;
  readonly linked: Linked;
}

/** One of the two timelines: what it shows, the other one shows from its own step on. */
export function Lane({ side, name, rank, requests, info, steps, origin_ns, begin, linked }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const minimap = useRef<HTMLCanvasElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const [drawn, setDrawn] = useState<Canvas | null>(null);
  const [hovered, setHovered] = useState<Hovered | null>(null);
  const [picked, setPicked] = useState<Slice | null>(null);
  const [isBehind, setBehind] = useState(false);
  const [trouble, setTrouble] = useState<ErrorBody | null>(null);
  const rows = useMemo(() => rowsOf(info, side, rank), [info, side, rank]);

  useEffect(() => {
    if (!canvas.current || !minimap.current || !scroller.current || !spacer.current) return;
    const parts = {
      canvas: canvas.current,
      minimap: minimap.current,
      scroller: scroller.current,
      spacer: spacer.current,
    };
    let shown = formatSpan(parseSpan(chosen("view")) ?? begin);
    let isFirst = true;
    const hearing = {
      onLines: (lines: typeof rows.lines.value.lines, pinnedBottom: number) => {
        rows.lines.value = { lines, pinnedBottom };
      },
      onView: (view: Span) => linked.follow(timeline, view),
      onRest: (view: Span) => {
        // Both come to rest together; one of them tells the address.
        const next = formatSpan(seenFrom(view, origin_ns));
        parts.canvas.dataset.view = next;
        const isOther = side === "a" && !isFirst && next !== shown;
        isFirst = false;
        if (!isOther) return;
        shown = next;
        choose({ view: next }, { replace: true });
      },
      onMoving: () => setHovered(null),
      onTrouble: (error: unknown) => setTrouble(bodyOf(error)),
      onBehind: setBehind,
    };
    const timeline = new Canvas(parts, requests.canvas, hearing, info.span, placedAt(begin, origin_ns));
    timeline.setZero(origin_ns);
    timeline.setSteps(bandsOf(steps, rank));
    linked.join(timeline, origin_ns, info.span);
    setDrawn(timeline);
    const alone = new Alone((error) => setTrouble(error === null ? null : bodyOf(error)));
    const pick = (slice: number | null) =>
      alone.run("pick", async (signal) => {
        const found = slice === null ? null : (await requests.details(slice, signal)).slice;
        setPicked(found);
        timeline.setEmphasis({ selected: found });
      });
    const stops = [
      () => alone.giveUpAll(),
      effect(() => timeline.setLayout(layoutOf(rows.groups, rows.shown.value))),
      effect(() => {
        // Back, and links: whoever follows first moves both.
        const asked = chosen("view");
        const view = parseSpan(asked) ?? begin;
        if (side === "b" || formatSpan(view) === shown) return;
        shown = formatSpan(view);
        linked.show(view);
      }),
      followColours(timeline, () => ""),
      followMinimap(parts.minimap, timeline),
      followPointer(parts.canvas, timeline, {
        onHover: setHovered,
        onClick: (hit) => {
          parts.canvas.focus({ preventScroll: true });
          pick(hit?.slice ?? null);
        },
        onDoubleClick: (hit) =>
          hit ? timeline.go(around({ start_ns: hit.start_ns, end_ns: hit.start_ns + hit.dur_ns })) : linked.show(begin),
        onRange: (range, _rows, isDone) => {
          timeline.setEmphasis({ range: isDone ? null : range });
          if (isDone) timeline.go(range);
        },
      }),
    ];
    return () => {
      for (const stop of stops) stop();
      linked.leave(timeline);
      timeline.dispose();
    };
  }, [rows, requests, info, steps, rank, origin_ns, begin, linked, side]);

  const onKeyDown = (event: KeyboardEvent) => {
    const held = heldOf(event);
    if (!drawn) return;
    if (held) {
      drawn.motion.press(held);
      drawn.redraw();
    } else if (commandOf(event) === "fit") linked.show(begin);
    else return;
    event.preventDefault();
  };
  const onKeyUp = (event: KeyboardEvent) => {
    const held = heldOf({ key: event.key, ctrlKey: false, metaKey: false, altKey: false });
    if (held) drawn?.motion.release(held);
  };
  const page = { run: String(requests.run), rank: rank === null ? null : String(rank), step: null, window: null };
  return (
    <div class="compare-lane">
      <div class="compare-lane-head">
        <h3>{name}</h3>
        <a href={hrefOf("timeline", page)}>Its timeline, with search, arrows and lists</a>
        <span role="status">
          {picked && (
            <a href={hrefOf("timeline", { ...page, ...placeOf(picked) })}>
              <code>{picked.name}</code>, {formatNs(picked.dur_ns)}: show it there
            </a>
          )}
        </span>
      </div>
      {trouble && <ErrorNotice error={trouble} />}
      <canvas ref={minimap} class="timeline-map" role="img" aria-label={`${name}: the whole run, and what is shown`} />
      <div class="timeline-scroll" ref={scroller}>
        <div class="timeline-stage">
          <Labels rows={rows} />
          <div class="timeline-canvas">
            <canvas
              ref={canvas}
              tabIndex={0}
              role="application"
              aria-label={`${name}. W and S zoom, A and D move, F shows the steps; both timelines move together.`}
              aria-busy={isBehind}
              onKeyDown={onKeyDown}
              onKeyUp={onKeyUp}
              onBlur={() => drawn?.motion.releaseAll()}
            />
            <Tooltip hovered={hovered} counter={(row) => drawn?.counter(row)} />
          </div>
        </div>
        <div ref={spacer} aria-hidden="true" />
      </div>
    </div>
  );
}

/** The rows of a lane; what is opened in it stands in the address by itself. */
function rowsOf(info: TimelineInfo, side: "a" | "b", rank: number | null): Rows {
  const names = { open: `${side}.open`, shut: `${side}.shut`, pins: `${side}.pin` };
  return new Rows(
    info.groups,
    () => ({ open: allChosen(names.open), shut: allChosen(names.shut), pins: allChosen(names.pins) }),
    () => rank,
    ({ open, shut, pins }) => choose({ [names.open]: open, [names.shut]: shut, [names.pins]: pins }, { replace: true }),
  );
}

/** Where the run's own timeline shows a slice. */
const placeOf = ({ start_ns, rank, name }: Slice) => formatTimeline({ at: { start_ns, rank, name } });

function bandsOf(steps: readonly StepOfRun[], rank: number | null) {
  const of = rank ?? steps[0]?.rank;
  return steps
    .filter((step) => step.rank === of)
    .map((step) => ({
      number: Number(step.number),
      rank: step.rank,
      start_ns: Number(step.start_ns),
      end_ns: Number(step.end_ns),
    }));
}
