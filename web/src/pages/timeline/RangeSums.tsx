import { useEffect, useState } from "preact/hooks";
import { bodyOf } from "../../api/client";
import type { ErrorBody } from "../../api/types";
import type { Sums } from "../../canvas/model";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { SUMS_BY } from "../../components/timeline-shared/requests";
import { Value } from "../../components/Value";
import { clipped } from "../../format/printable";
import { formatCount } from "../../format/units";
import { param, setParams } from "../../state/route";
import { formatSpan } from "../../state/timeline_params";
import type { Explore, Range } from "./explore";

/** What lies in the selected range, summed up. */
export function RangeSums({ explore }: { explore: Explore }) {
  const range = explore.range.value;
  const by = SUMS_BY.find((by) => by === param("sums")) ?? "name";
  const [sums, setSums] = useState<Sums | null>(null);
  const [error, setError] = useState<ErrorBody | null>(null);
  const rows = range ? explore.rowsFor(range).join() : "";
  useEffect(() => {
    if (!range) return;
    const abort = new AbortController();
    setSums(null);
    setError(null);
    explore.requests.sums(range, by, rows, abort.signal).then(setSums, (error: unknown) => {
      if (!abort.signal.aborted) setError(bodyOf(error));
    });
    return () => abort.abort();
  }, [explore, range, by, rows]);

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
        <button type="button" onClick={() => explore.fitTo(range)}>
          Show it
        </button>
        <WindowButton range={range} />
      </div>
      {error && <ErrorNotice error={error} />}
      {!sums && !error && <Loading what="Summing up…" />}
      {sums && <SumsTable explore={explore} sums={sums} by={by} />}
    </>
  );
}

/** Every page can be of this window only. */
function WindowButton({ range }: { range: Range }) {
  const text = formatSpan(range);
  return param("window") === text ? (
    <button type="button" onClick={() => setParams({ window: null, range: text })}>
      All pages: everything again
    </button>
  ) : (
    <button type="button" onClick={() => setParams({ window: text })}>
      All pages: only this range
    </button>
  );
}

function SumsTable({ explore, sums, by }: { explore: Explore; sums: Sums; by: string }) {
  return (
    <div class="timeline-rows">
      <table>
        <caption class="dim">
          {formatCount(sums.slices)} slices
          {sums.names > sums.rows.length &&
            `; the first ${formatCount(sums.rows.length)} of ${formatCount(sums.names)} rows`}
          . A slice counts with the part of it that lies in the range.
        </caption>
        <thead>
          <tr>
            <th scope="col">{by}</th>
            <th scope="col" class="number">
              slices
            </th>
            <th scope="col" class="number">
              total
            </th>
            <th scope="col" class="number">
              self
            </th>
            <th scope="col">longest</th>
          </tr>
        </thead>
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
                  <button type="button" class="link" onClick={() => explore.select(row.longest ?? 0, true)}>
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
