import { useEffect, useState } from "preact/hooks";
import { bodyOf } from "../../api/client";
import type { ErrorBody } from "../../api/types";
import type { Sums } from "../../canvas/model";
import { around, type Span } from "../../canvas/view";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { PlainHead } from "../../components/table/PlainHead";
import { SUMS_BY } from "../../components/timeline-shared/requests";
import { Value } from "../../components/Value";
import { clipped } from "../../format/printable";
import { formatCount } from "../../format/units";
import { param, setParams } from "../../state/route";
import { formatSpan } from "../../state/timeline_params";
import type { Changes } from "../../state/url";
import type { TimelineController } from "./controller";

/** What lies in the selected range, summed up. */
export function RangeSums({ controller }: { controller: TimelineController }) {
  const range = controller.range.value;
  const by = SUMS_BY.find((by) => by === param("sums")) ?? "name";
  const [sums, setSums] = useState<Sums | null>(null);
  const [error, setError] = useState<ErrorBody | null>(null);
  const rows = range ? controller.rowsFor(range).join() : "";
  useEffect(() => {
    if (!range) return;
    const abort = new AbortController();
    setSums(null);
    setError(null);
    controller.requests.sums(range, by, rows, abort.signal).then(setSums, (error: unknown) => {
      if (!abort.signal.aborted) setError(bodyOf(error));
    });
    return () => abort.abort();
  }, [controller, range, by, rows]);

  if (!range) return <Empty>No range is selected: drag over the ruler, or over rows.</Empty>;
  return (
    <>
      <div class="timeline-range">
        <span>
          <Value unit="ns" value={range.end_ns - range.start_ns} /> from <Value unit="ns" value={range.start_ns} />
          {range.rows.length > 0 && `, ${formatCount(range.rows.length)} ${range.rows.length === 1 ? "row" : "rows"}`}
        </span>
        <label>
          Sums by{" "}
          <select value={by} onChange={(event) => setParams({ sums: event.currentTarget.value }, { replace: true })}>
            {SUMS_BY.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
        <button type="button" onClick={() => controller.viewport.go(around(range))}>
          Show it
        </button>
        <WindowButton controller={controller} range={range} />
      </div>
      {error && <ErrorNotice error={error} />}
      {!sums && !error && <Loading what="Summing up…" />}
      {sums && <SumsTable controller={controller} sums={sums} by={by} />}
    </>
  );
}

/** Every page can be of this window only. */
function WindowButton({ controller, range }: { controller: TimelineController; range: Span }) {
  const text = formatSpan(range);
  // The timeline stays where it is.
  const choose = (changes: Changes) => setParams({ ...changes, view: formatSpan(controller.viewport.goal) });
  return param("window") === text ? (
    <button type="button" onClick={() => choose({ window: null, range: text })}>
      All pages: everything again
    </button>
  ) : (
    <button type="button" onClick={() => choose({ window: text })}>
      All pages: only this range
    </button>
  );
}

function SumsTable({ controller, sums, by }: { controller: TimelineController; sums: Sums; by: string }) {
  return (
    <div class="timeline-rows">
      <table>
        <caption class="dim">
          {formatCount(sums.slices)} slices
          {sums.names > sums.rows.length &&
            `; the first ${formatCount(sums.rows.length)} of ${formatCount(sums.names)} rows`}
          . A slice counts with the part of it that lies in the range.
        </caption>
        <PlainHead columns={[by, { number: "slices" }, { number: "total" }, { number: "self" }, "longest"]} />
        <tbody>
          {sums.rows.map((row) => (
            <tr key={`${row.name} ${row.kind} ${row.longest}`}>
              <th scope="row">
                <code>{clipped(row.name, 300)}</code>
              </th>
              <td class="number">
                <Value unit="count" value={row.slices} />
              </td>
              <td class="number">
                <Value unit="ns" value={row.total_ns} />
              </td>
              <td class="number">
                <Value unit="ns" value={row.self_ns} />
              </td>
              <td>
                {row.longest !== null && (
                  <button
                    type="button"
                    class="link"
                    onClick={() => controller.selection.select(row.longest ?? 0, true)}
                  >
                    show
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
