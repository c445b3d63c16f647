import type { RunDetail } from "../../api/types";
import { setParams } from "../../state/route";
import { runs } from "../../state/runs";
import { changesFor, type Side, type Sides } from "./sides";

interface Props {
  readonly sides: Sides;
  readonly details: readonly [RunDetail, RunDetail | undefined];
}

/** Which runs or ranks are compared. */
export function PickSides({ sides, details }: Props) {
  const { a, b } = sides;
  // Steps and windows are of one run; the timelines' too.
  const set = (next: Sides) =>
    setParams({
      ...changesFor(next, runs.value ?? []),
      step: null,
      window: null,
      view: null,
      "a-step": null,
      "b-step": null,
    });
  return (
    <div class="choices compare-sides">
      <Pick label="Before" side={a} detail={details[0]} onChange={(next) => set({ a: next, b })} />
      <button type="button" onClick={() => set({ a: b, b: a })}>
        Swap
      </button>
      <Pick label="Now" side={b} detail={details[1]} onChange={(next) => set({ a, b: next })} />
    </div>
  );
}

interface PickProps {
  readonly label: string;
  readonly side: Side;
  readonly detail: RunDetail | undefined;
  readonly onChange: (side: Side) => void;
}

function Pick({ label, side, detail, onChange }: PickProps) {
  const ranks = detail?.id === side.run ? detail.run.ranks : [];
  const shown = side.rank === null || ranks.includes(side.rank) ? ranks : [side.rank, ...ranks];
  return (
    <fieldset>
      <legend>{label}</legend>
      <select
        aria-label={`${label}: run`}
        value={side.run}
        onChange={(event) => onChange({ run: Number(event.currentTarget.value), rank: null })}
      >
        {(runs.value ?? []).map((run) => (
          <option key={run.id} value={run.id}>
            {run.name}
          </option>
        ))}
      </select>
      {(ranks.length > 1 || side.rank !== null) && (
        <select
          aria-label={`${label}: rank`}
          value={side.rank ?? ""}
          onChange={(event) => {
            const { value } = event.currentTarget;
            onChange({ run: side.run, rank: value === "" ? null : Number(value) });
          }}
        >
          <option value="">all ranks</option>
          {shown.map((rank) => (
            <option key={rank} value={rank}>
              rank {rank}
            </option>
          ))}
        </select>
      )}
    </fieldset>
  );
}
