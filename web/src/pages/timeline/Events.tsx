import { useEffect, useMemo, useState } from "preact/hooks";
import { bodyOf } from "../../api/client";
import type { ErrorBody } from "../../api/types";
import type { RangeOfRows } from "../../canvas/scene";
import type { Span } from "../../canvas/view";
import { Choices } from "../../components/Choices";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { Value } from "../../components/Value";
import { formatCount } from "../../format/units";
import { param } from "../../state/route";
import { formatSpan } from "../../state/timeline_params";
import type { TimelineController } from "./controller";
import { EVENT_ORDERS, eventRows, type Events as Known, MOST_EVENTS, ordered, withNext } from "./events";
import { PathEvents } from "./PathEvents";
import { SliceTable } from "./SliceTable";

/** Events on one page of the table. */
const PAGE = 500;

const PATH_EVENTS = "path";
const KINDS = [
  ["slices", "slices and samples"],
  [PATH_EVENTS, "pieces of the critical path"],
] as const;

/** Every event that lies in the selected range, each with the way to it. */
export function Events({ controller }: { controller: TimelineController }) {
  const range = controller.range.value;
  if (!range) return <Empty>No range is selected: drag over the ruler, or over rows.</Empty>;
  const { pathRows } = controller;
  const isOfPath = range.rows.length > 0 && range.rows.every((row) => pathRows.has(row));
  const isPath = isOfPath || (pathRows.size > 0 && param("of") === PATH_EVENTS);
  return (
    <>
      {pathRows.size > 0 && !isOfPath && (
        <Choices label="Events" name="of" value={isPath ? PATH_EVENTS : "slices"} options={KINDS} />
      )}
      {isPath ? <PathEvents controller={controller} range={range} /> : <SliceEvents {...{ controller, range }} />}
    </>
  );
}

function SliceEvents({ controller, range }: { controller: TimelineController; range: RangeOfRows }) {
  const rows = eventRows(controller.rows, range.rows);
  if (rows.length === 0) return <Empty>The range is of no row of slices.</Empty>;
  // Nothing of one range stays when there is another.
  return <EventsOf key={`${formatSpan(range)} ${rows.join()}`} controller={controller} range={range} rows={rows} />;
}

interface Props {
  readonly controller: TimelineController;
  readonly range: Span;
  readonly rows: readonly number[];
}

function EventsOf({ controller, range, rows }: Props) {
  const [known, setKnown] = useState<Known>({ events: [], isAll: false });
  const [error, setError] = useState<ErrorBody | null>(null);
  const [isWhole, setWhole] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: range and rows are always the same here
  useEffect(() => {
    const abort = new AbortController();
    const list = (part: readonly number[], window: Span, limit: number) =>
      controller.requests.list(part, window, limit, abort.signal);
    const load = async () => {
      let next: Known = { events: [], isAll: false };
      do {
        next = await withNext(next, list, rows, range);
        if (abort.signal.aborted) return;
        setKnown(next);
      } while (isWhole && !next.isAll && next.events.length < MOST_EVENTS);
    };
    load().catch((error: unknown) => {
      if (!abort.signal.aborted) setError(bodyOf(error));
    });
    return () => abort.abort();
  }, [controller, isWhole]);

  if (error) return <ErrorNotice error={error} />;
  const { events, isAll } = known;
  if (events.length === 0 && !isAll) return <Loading />;
  const order = (isAll && EVENT_ORDERS.find((each) => each === param("events"))) || "start";
  const isCut = events.length >= MOST_EVENTS && !isAll;
  return (
    <>
      <div class="timeline-range">
        <span>
          <Value unit="ns" value={range.end_ns - range.start_ns} /> from <Value unit="ns" value={range.start_ns} />
        </span>
        {isAll ? (
          <Choices
            label="Order"
            name="events"
            value={order}
            options={EVENT_ORDERS.map((each) => [each, each] as const)}
          />
        ) : isWhole ? (
          <span role="status">{isCut ? "Select a shorter range for all." : "Loading the others…"}</span>
        ) : (
          <button type="button" onClick={() => setWhole(true)}>
            Load all, to order them
          </button>
        )}
      </div>
      <Pages key={order} controller={controller} known={known} order={order} />
    </>
  );
}

/** A page of the events in their order. */
function Pages({
  controller,
  known: { events, isAll },
  order,
}: {
  controller: TimelineController;
  known: Known;
  order: (typeof EVENT_ORDERS)[number];
}) {
  const [page, setPage] = useState(0);
  const inOrder = useMemo(() => ordered(events, order), [events, order]);
  const shown = inOrder.slice(page * PAGE, (page + 1) * PAGE);
  const last = Math.ceil(events.length / PAGE) - 1;
  const first = formatCount(page * PAGE + 1);
  const count = `${isAll ? "" : "the first "}${formatCount(events.length)}`;
  const words =
    last > 0
      ? `${first} to ${formatCount(page * PAGE + shown.length)} of ${count} events`
      : `${formatCount(events.length)} ${events.length === 1 ? "event" : "events"}`;
  return (
    <>
      {last > 0 && (
        <div class="timeline-range">
          <button type="button" disabled={page === 0} onClick={() => setPage(page - 1)}>
            Previous
          </button>
          <button type="button" disabled={page === last} onClick={() => setPage(page + 1)}>
            Next
          </button>
        </div>
      )}
      <SliceTable
        controller={controller}
        slices={shown}
        caption={`${words}, also those that lie in the range in part.`}
      />
    </>
  );
}
