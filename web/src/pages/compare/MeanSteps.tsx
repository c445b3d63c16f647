import type { Num } from "../../api/types";
import { partLook } from "../../classes";
import { Legend } from "../../components/charts/Legend";
import { fillOf } from "../../components/charts/Patterns";
import { STEP_PARTS } from "../../components/charts/steps";
import { Value } from "../../components/Value";
import { exactCell } from "../../format/cell";
import { formatNs, formatRatio } from "../../format/units";
import type { PartClass, StepParts } from "./step_parts";

const HEIGHT = 26;
const STEP_ORDER: readonly string[] = STEP_PARTS;

/** What both mean steps consist of: two bars on one scale. */
export function MeanSteps({ parts, names }: { parts: StepParts; names: readonly [string, string] }) {
  const { total } = parts;
  // In the order in which steps are stacked everywhere, not in that of changes.
  const place = ({ name }: PartClass) => STEP_ORDER.indexOf(name);
  const classes = [...parts.classes].sort((one, other) => place(one) - place(other));
  const longest = Math.max(Number(total.a_ns), Number(total.b_ns), 1);
  return (
    <div class="mean-steps">
      {(["a_ns", "b_ns"] as const).map((column, at) => (
        <MeanStep
          key={column}
          name={`${at === 0 ? "before" : "now"}: ${names[at]}`}
          total={total[column] as Num}
          parts={classes.map(({ name, row }) => [name, row[column] as Num])}
          longest={longest}
        />
      ))}
      <Legend parts={classes.map(({ name }) => name)} />
    </div>
  );
}

interface Props {
  readonly name: string;
  readonly total: Num;
  readonly parts: readonly (readonly [part: string, ns: Num])[];
  readonly longest: number;
}

function MeanStep({ name, total, parts, longest }: Props) {
  const ratio = (ns: Num) => Number(ns) / Math.max(Number(total), 1);
  const shown = parts.filter(([, ns]) => ns > 0);
  const words = shown.map(([part, ns]) => `${partLook(part).words} ${formatRatio(ratio(ns))}`);
  let end = 0;
  return (
    <>
      <span class="mean-steps-name" title={name}>
        {name}
      </span>
      <svg
        class="chart"
        role="img"
        aria-label={`The mean step ${name}: ${words.join(", ")}`}
        width="100%"
        height={HEIGHT}
      >
        {shown.map(([part, ns]) => {
          const { colour, texture, words } = partLook(part);
          const from = end;
          end += Number(ns);
          return (
            <rect
              key={part}
              x={`${(from / longest) * 100}%`}
              width={`${(Number(ns) / longest) * 100}%`}
              height={HEIGHT}
              fill={fillOf(colour, texture)}
            >
              <title>{`${words}: ${formatNs(ns)}, ${formatRatio(ratio(ns))} (${exactCell("ns", ns)})`}</title>
            </rect>
          );
        })}
      </svg>
      <span class="number">
        <Value unit="ns" value={total} />
      </span>
    </>
  );
}
