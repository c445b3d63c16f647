import type { Breakdown } from "../../api/types";
import { partLook } from "../../classes";
import { PlainHead } from "../table/PlainHead";
import { Value } from "../Value";
import { Swatch } from "./Swatch";

/** The parts of a breakdown with their times and shares; it is the legend of the bars beside it, too. */
export function BreakdownTable({ breakdown, label }: { breakdown: Breakdown; label: string }) {
  return (
    <table class="plain" aria-label={label}>
      <PlainHead columns={["Part", { number: "Time" }, { number: "Share" }]} />
      <tbody>
        {breakdown.parts.map((part) => (
          <tr key={part.class}>
            <th scope="row">
              <Swatch part={part.class} /> {partLook(part.class).words}
            </th>
            <td class="number">
              <Value unit="ns" value={part.ns} />
            </td>
            <td class="number">
              <Value unit="ratio" value={part.ratio} />
            </td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">total</th>
          <td class="number">
            <Value unit="ns" value={breakdown.total_ns} />
          </td>
          <td />
        </tr>
      </tfoot>
    </table>
  );
}
