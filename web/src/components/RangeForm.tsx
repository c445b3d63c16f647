import { useEffect, useState } from "preact/hooks";
import { param, setParams } from "../state/route";
import { formatSpan } from "../state/timeline_params";
import type { Stretch } from "./charts/series";
import { millisecondsOf, nsOfMilliseconds } from "./milliseconds";

interface Props {
  readonly range: Stretch | null;
  readonly onRange: (range: Stretch | null) => void;
}

/** The stretch of time that is chosen on a chart, to be typed as well, and what can be done with it. */
export function RangeForm({ range, onRange }: Props) {
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const [isWrong, setWrong] = useState(false);
  const [start_ns, end_ns] = [range?.start_ns, range?.end_ns];
  useEffect(() => {
    setFrom(start_ns === undefined ? "" : millisecondsOf(start_ns));
    setTo(end_ns === undefined ? "" : millisecondsOf(end_ns));
    setWrong(false);
  }, [start_ns, end_ns]);
  const submit = (event: Event) => {
    event.preventDefault();
    const [start_ns, end_ns] = [nsOfMilliseconds(from), nsOfMilliseconds(to)];
    if (start_ns !== null && end_ns !== null && end_ns > start_ns) onRange({ start_ns, end_ns });
    else setWrong(true);
  };
  const isEverywhere = range !== null && param("window") === formatSpan(range);
  return (
    <form class="range-form" onSubmit={submit} aria-label="Range">
      <label>
        From{" "}
        <input
          type="text"
          inputMode="decimal"
          size={10}
          value={from}
          aria-invalid={isWrong}
          onInput={(event) => setFrom(event.currentTarget.value)}
        />
      </label>
      <label>
        to{" "}
        <input
          type="text"
          inputMode="decimal"
          size={10}
          value={to}
          aria-invalid={isWrong}
          onInput={(event) => setTo(event.currentTarget.value)}
        />{" "}
        ms
      </label>
      <button type="submit">Select</button>
      {range && (
        <>
          <button type="button" onClick={() => onRange(null)}>
            Everything
          </button>
          {!isEverywhere && (
            <button type="button" onClick={() => setParams({ window: formatSpan(range) })}>
              All pages: only this range
            </button>
          )}
        </>
      )}
      <span role="status">{isWrong && "A range begins before it ends, both in milliseconds, as in 12.5."}</span>
    </form>
  );
}
