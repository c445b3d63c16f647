import { useMemo } from "preact/hooks";
import type { Slice } from "../../canvas/model";
import { CanvasFrame } from "../../components/timeline-shared/CanvasFrame";
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
  const lane = useMemo(() => new Lane(of), [of]);
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
      <CanvasFrame
        state={lane.canvas}
        draw={lane.draw}
        label={`${name}. W and S zoom, A and D move, F shows the steps; both timelines move together.`}
        mapLabel={`${name}: the whole run, and what is shown`}
      />
    </div>
  );
}

/** Where the run's own timeline shows a slice. */
const placeOf = ({ start_ns, rank, name }: Slice) => formatTimeline({ at: { start_ns, rank, name } });
