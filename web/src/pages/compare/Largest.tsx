import type { Num } from "../../api/types";
import { partLook } from "../../classes";
import { hatchOf } from "../../components/charts/Patterns";
import { Swatch } from "../../components/charts/Swatch";
import { MiddleCut } from "../../components/MiddleCut";
import { PlainHead } from "../../components/table/PlainHead";
import { Value } from "../../components/Value";
import { exactCell, formatCell } from "../../format/cell";
import { shortName } from "../../format/names";
import { formatCount } from "../../format/units";
import { Milliseconds } from "./Milliseconds";
import { type Change, largestOf, type StepParts } from "./step_parts";

/** Names that are told one by one. */
const FIRST = 8;
const HEIGHT = 16;

/** Which names explain the difference, whatever class they are of: the largest changes, and all others in one row. */
export function Largest({ parts }: { parts: StepParts }) {
  const { first, others } = largestOf(parts, FIRST);
  const total = parts.total.change_ns as Num;
  const rows = others ? [...first, others] : first;
  const longest = Math.max(...rows.map(({ ns }) => Math.abs(Number(ns))), 1);
  if (first.length === 0) return null;
  return (
    <div class="table-scroll step-parts largest">
      <table aria-label="What explains the difference">
        <PlainHead
          columns={[
            "what changed most",
            "class",
            "less or more",
            { number: "change, ms" },
            { number: "of the difference", title: "A change as a share of the difference of the mean steps" },
          ]}
        />
        <tbody>
          {first.map((change) => (
            <tr key={`${change.class} ${change.name}`}>
              <th scope="row" title={exactCell("text", change.name)}>
                {change.name === null ? (
                  <i>no name recorded</i>
                ) : (
                  <MiddleCut text={formatCell("text", shortName(change.name))} />
                )}
              </th>
              <td>
                <Swatch part={change.class} /> {partLook(change.class).words}
              </td>
              <Numbers change={change} total={total} longest={longest} />
            </tr>
          ))}
          {others && (
            <tr>
              <th scope="row" colSpan={2}>
                {formatCount(others.count)} others, added up
              </th>
              <Numbers change={others} total={total} longest={longest} />
            </tr>
          )}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row" colSpan={3}>
              the difference of the mean steps
            </th>
            <td class="number">
              <Milliseconds ns={total} isChange />
            </td>
            <td />
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

function Numbers({ change, total, longest }: { change: Pick<Change, "ns">; total: Num; longest: number }) {
  const ns = Number(change.ns);
  const width = (Math.abs(ns) / longest) * 50;
  const place = { x: `${ns < 0 ? 50 - width : 50}%`, width: `${width}%`, height: HEIGHT };
  return (
    <>
      <td class="bars-cell">
        <svg class="chart" width="100%" height={HEIGHT} aria-hidden="true" focusable="false">
          <rect class={ns > 0 ? "shift-more-3" : "shift-less-3"} {...place} />
          <rect fill={hatchOf(ns > 0 ? "rising" : "dots")} {...place} />
          <line class="step-parts-sum" x1="50%" x2="50%" y1="0" y2={HEIGHT} />
        </svg>
      </td>
      <td class="number">
        <Milliseconds ns={change.ns} isChange />
      </td>
      <td class="number">
        <Value unit="ratio" value={Number(total) === 0 ? null : ns / Number(total)} />
      </td>
    </>
  );
}
