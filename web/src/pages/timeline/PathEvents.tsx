import { useEffect, useRef, useState } from "preact/hooks";
import { bodyOf } from "../../api/client";
import type { Envelope, ErrorBody, Row } from "../../api/types";
import type { RangeOfRows } from "../../canvas/scene";
import { partLook } from "../../classes";
import { ErrorNotice, Loading } from "../../components/Notice";
import { PlainHead } from "../../components/table/PlainHead";
import { Value } from "../../components/Value";
import { clipped } from "../../format/printable";
import { formatCount } from "../../format/units";
import type { TimelineController } from "./controller";
import { linkOf, piecesOfRange } from "./path_row";

/** The pieces of the critical path that lie in the selected range, each with the way to its slice. */
export function PathEvents({ controller, range }: { controller: TimelineController; range: RangeOfRows }) {
  const rank = controller.pathRank(range.rows);
  const [answer, setAnswer] = useState<Envelope | null>(null);
  const [error, setError] = useState<ErrorBody | null>(null);
  const { start_ns, end_ns } = range;
  useEffect(() => {
    const abort = new AbortController();
    const query = piecesOfRange(rank, { start_ns, end_ns });
    controller.requests.analysis("critical_path_pieces", query, abort.signal).then(setAnswer, (error: unknown) => {
      if (!abort.signal.aborted) setError(bodyOf(error));
    });
    return () => abort.abort();
  }, [controller, rank, start_ns, end_ns]);
  const table = useRef<HTMLTableElement>(null);
  const selected = controller.selection.details.value?.slice;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another selection is another row
  useEffect(() => {
    table.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [selected?.id]);
  if (error) return <ErrorNotice error={error} />;
  if (!answer) return <Loading />;
  const { results, page } = answer;
  const count = formatCount(page.matching);
  const caption =
    results.length < page.matching
      ? `The first ${formatCount(results.length)} of ${count} pieces of the critical path; select a shorter range for all.`
      : `${count} ${results.length === 1 ? "piece" : "pieces"} of the critical path, also those that lie in the range in part.`;
  const isOf = (row: Row) =>
    selected !== undefined && linkOf(row)?.start_ns === selected.start_ns && row.name === selected.name;

  return (
    <div class="timeline-rows">
      <table ref={table}>
        <caption class="dim">{caption}</caption>
        <PlainHead columns={["slice", { number: "start" }, { number: "length" }, "held up by", "step", "where"]} />
        <tbody>
          {results.map((row) => (
            <tr key={`${row.rank} ${row.step} ${row.start_ns}`} aria-current={isOf(row) ? "true" : undefined}>
              <th scope="row">
                <PieceName controller={controller} row={row} />
              </th>
              <td class="number">
                <Value unit="ns" value={row.start_ns ?? null} />
              </td>
              <td class="number">
                <Value unit="ns" value={row.path_ns ?? null} />
              </td>
              <td>{partLook(String(row.class)).words}</td>
              <td>{`${row.step}${rank === null ? ` of rank ${row.rank}` : ""}`}</td>
              <td>{clipped(String(row.track), 100)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function PieceName({ controller, row }: { controller: TimelineController; row: Row }) {
  const link = linkOf(row);
  if (!link) return <span class="dim">nothing was recorded</span>;
  return (
    <button type="button" class="link" onClick={() => controller.visitPiece(Number(row.start_ns), link)}>
      <code>{clipped(String(row.name), 300)}</code>
    </button>
  );
}
