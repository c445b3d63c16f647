import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Slice } from "../../canvas/model";
import { ErrorNotice } from "../../components/Notice";
import { Labels } from "../../components/timeline-shared/Labels";
import { Tooltip } from "../../components/timeline-shared/Tooltip";
import { formatNs } from "../../format/units";
import { hrefOf } from "../../state/route";
import { keyOf } from "../../state/runs";
import { formatTimeline } from "../../state/timeline_params";
import { Lane, type LaneOf } from "./lane";

interface Props {
  readonly name: string;
  /** What it is a lane of; another one is another lane. */
  readonly of: LaneOf;
}

/** One of two timelines, with the way to the whole of it. */
export function LaneView({ name, of }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const minimap = useRef<HTMLCanvasElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const lane = useMemo(() => new Lane(of), [of]);
  useEffect(() => {
    if (!canvas.current || !minimap.current || !scroller.current || !spacer.current) return;
    return lane.draw({
      canvas: canvas.current,
      minimap: minimap.current,
      scroller: scroller.current,
      spacer: spacer.current,
    });
  }, [lane]);
  const part = { run: keyOf(of.requests.run), rank: of.rank === null ? null : String(of.rank) };
  const page = { ...part, step: null, window: null };
  const picked = lane.picked.value;
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
      {lane.trouble.value && <ErrorNotice error={lane.trouble.value} />}
      <canvas ref={minimap} class="timeline-map" role="img" aria-label={`${name}: the whole run, and what is shown`} />
      <div class="timeline-scroll" ref={scroller}>
        <div class="timeline-stage">
          <Labels rows={lane.rows} />
          <div class="timeline-canvas">
            <canvas
              ref={canvas}
              tabIndex={0}
              role="application"
              aria-label={`${name}. W and S zoom, A and D move, F shows the steps; both timelines move together.`}
              aria-busy={lane.isBehind.value}
              onKeyDown={lane.onKeyDown}
              onKeyUp={lane.onKeyUp}
              onBlur={lane.onBlur}
            />
            <Tooltip hovered={lane.hovered.value} counter={(row) => lane.counter(row)} />
          </div>
        </div>
        <div ref={spacer} aria-hidden="true" />
      </div>
    </div>
  );
}

/** Where the run's own timeline shows a slice. */
const placeOf = ({ start_ns, rank, name }: Slice) => formatTimeline({ at: { start_ns, rank, name } });
