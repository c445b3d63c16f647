import { useEffect, useState } from "preact/hooks";
import { bodyOf } from "../../api/client";
import type { ErrorBody } from "../../api/types";
import type { Slice } from "../../canvas/model";
import { Choices } from "../../components/Choices";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { Value } from "../../components/Value";
import { formatCount } from "../../format/units";
import { param } from "../../state/route";
import type { TimelineController } from "./controller";
import { EVENT_ORDERS, eventRows, MOST_EVENTS, ordered } from "./events";
import { SliceTable } from "./SliceTable";

/** Every event that lies in the selected range, each with the way to it. */
export function Events({ controller }: { controller: TimelineController }) {
  const range = controller.range.value;
  const [slices, setSlices] = useState<readonly Slice[] | null>(null);
  const [error, setError] = useState<ErrorBody | null>(null);
  const { ids, all } = range ? eventRows(controller.rows, range.rows) : { ids: [], all: 0 };
  const rows = ids.join();
  useEffect(() => {
    setSlices(null);
    setError(null);
    if (!range || !rows) return;
    const abort = new AbortController();
    controller.requests
      .list(rows.split(",").map(Number), range, MOST_EVENTS, abort.signal)
      .then(setSlices, (error: unknown) => {
        if (!abort.signal.aborted) setError(bodyOf(error));
      });
    return () => abort.abort();
  }, [controller, range, rows]);

  if (!range) return <Empty>No range is selected: drag over the ruler, or over rows.</Empty>;
  if (!rows) return <Empty>The range is of no row of slices.</Empty>;
  if (error) return <ErrorNotice error={error} />;
  if (!slices) return <Loading />;
  const isCut = slices.length === MOST_EVENTS;
  const order = (!isCut && EVENT_ORDERS.find((each) => each === param("events"))) || "start";
  const counted = isCut
    ? `The first ${formatCount(MOST_EVENTS)} events by start; select a shorter range for all`
    : `${formatCount(slices.length)} ${slices.length === 1 ? "event" : "events"}, also those that lie in it in part`;
  const among = all > ids.length ? `, of the first ${formatCount(ids.length)} of ${formatCount(all)} rows` : "";
  return (
    <>
      <div class="timeline-range">
        <span>
          <Value unit="ns" value={range.end_ns - range.start_ns} /> from <Value unit="ns" value={range.start_ns} />
        </span>
        {!isCut && (
          <Choices
            label="Order"
            name="events"
            value={order}
            options={EVENT_ORDERS.map((each) => [each, each] as const)}
          />
        )}
      </div>
      <SliceTable controller={controller} slices={ordered(slices, order)} caption={`${counted}${among}.`} />
    </>
  );
}
