import type { Breakdown } from "../../api/types";
import { partLook } from "../../classes";
import { Value } from "../Value";
import { Swatch } from "./Swatch";

/** The parts of a breakdown with their times and shares, in a few lines: the legend of the bar beside it. */
export function BreakdownLegend({ breakdown, label }: { breakdown: Breakdown; label: string }) {
  return (
    <ul class="legend breakdown-legend" aria-label={label}>
      {breakdown.parts
        .filter((part) => Number(part.ns) > 0)
        .map((part) => (
          <li key={part.class}>
            <Swatch part={part.class} /> {partLook(part.class).words}{" "}
            <span class="number">
              <Value unit="ns" value={part.ns} />
            </span>{" "}
            <span class="dim">
              <Value unit="ratio" value={part.ratio} />
            </span>
          </li>
        ))}
    </ul>
  );
}
