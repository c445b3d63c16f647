import type { Breakdown } from "../../api/types";
import { partLook } from "../../classes";
import { exactCell } from "../../format/cell";
import { formatNs, formatRatio } from "../../format/units";
import { fillOf } from "./Patterns";

/** A time and what it goes to, as one bar. */
export function BreakdownBar({ breakdown, label }: { breakdown: Breakdown; label: string }) {
  const parts = breakdown.parts.filter((part) => part.ns > 0);
  const starts = parts.map((_, at) => parts.slice(0, at).reduce((sum, part) => sum + part.ratio, 0));
  const words = parts.map((part) => `${partLook(part.class).words} ${formatRatio(part.ratio)}`);
  return (
    <svg class="chart breakdown-bar" role="img" aria-label={`${label}: ${words.join(", ")}`} width="100%" height="24">
      {parts.map((part, at) => {
        const { colour, texture, words } = partLook(part.class);
        return (
          <rect
            key={part.class}
            x={`${(starts[at] ?? 0) * 100}%`}
            width={`${part.ratio * 100}%`}
            height="24"
            fill={fillOf(colour, texture)}
          >
            <title>{`${words}: ${formatNs(part.ns)}, ${formatRatio(part.ratio)} (${exactCell("ns", part.ns)})`}</title>
          </rect>
        );
      })}
    </svg>
  );
}
