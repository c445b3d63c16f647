import { withToken } from "../../api/client";
import { withQuery } from "../../api/paths";
import type { Num, Row } from "../../api/types";
import { partLook } from "../../classes";
import { hatchOf } from "../../components/charts/Patterns";
import { SideKeys } from "../../components/charts/SideKeys";
import { Swatch } from "../../components/charts/Swatch";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { PlainHead } from "../../components/table/PlainHead";
import { Value } from "../../components/Value";
import { exactCell, formatCell } from "../../format/cell";
import { formatCount, formatNs } from "../../format/units";
import { params, setParams } from "../../state/route";
import { type Compared, sourceOf, useCompared } from "./asked";
import { Largest } from "./Largest";
import { MeanSteps } from "./MeanSteps";
import { Milliseconds } from "./Milliseconds";
import { type Bar, following, type PartClass, reachOf, type StepParts, stepPartsOf } from "./step_parts";

/** Rows that are asked for: more names than any run has had. */
const MOST = 10_000;
/** Names of a class that are shown at first; the others have smaller changes. */
const FIRST = 20;

/** Where the difference of the two mean steps comes from: a sum of classes, each a sum of names. */
export function StepDifference({ compared }: { compared: Compared }) {
  const answer = useCompared(compared, "step_breakdown", [["limit", MOST]]);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading what="Comparing what steps consist of…" />;
  const { path, query } = sourceOf(compared, "step_breakdown");
  const parts = stepPartsOf(answer.value.results);
  return (
    <section aria-label="Where the difference comes from" aria-busy={answer.state === "loading"}>
      <h2>Where the difference comes from</h2>
      {parts ? (
        <>
          <p>
            {meansOf(parts.total)}{" "}
            <span class="dim">
              Each moment of a step belongs to one class, and to one name in it: changes of names sum to that of their
              class, changes of classes to the difference.
            </span>
          </p>
          <MeanSteps parts={parts} names={compared.names} />
          <Largest parts={parts} />
          <h3>By class, and by name in each</h3>
          <SideKeys names={compared.names} />
          <Account parts={parts} names={compared.names} />
          <p>
            <a href={withToken(withQuery(path, [...query, ["format", "csv"]]))} download="step_breakdown.csv">
              Save all rows as CSV
            </a>
          </p>
        </>
      ) : (
        <Empty>One of the two has no complete step, so there is no difference of steps.</Empty>
      )}
    </section>
  );
}

/** Both means, and which is longer. */
function meansOf({ a_ns, b_ns, change_ns }: Row): string {
  const [before, now, change] = [a_ns, b_ns, change_ns].map((ns) => ns as Num);
  const means = `${formatNs(now as Num)} now, ${formatNs(before as Num)} before`;
  if (Number(change) === 0) return `The mean step takes as long as before: ${means}.`;
  const size = formatNs(Number(change) < 0 ? -(change as Num) : (change as Num));
  return `The mean step takes ${size} ${Number(change) < 0 ? "less" : "longer"}: ${means}.`;
}

/** What is drawn of a row: where its change stands, on the axis of all, and the longest time. */
interface Scale {
  readonly reach: Bar;
  readonly longest: number;
}

function Account({ parts, names }: { parts: StepParts; names: readonly [string, string] }) {
  const [open, all] = [params("open"), params("all")];
  const toggle = (name: "open" | "all", part: string) => {
    const known = params(name);
    setParams({ [name]: known.includes(part) ? known.filter((other) => other !== part) : [...known, part] });
  };
  const { classes, total } = parts;
  const bars = following(
    classes.map(({ row }) => row),
    0,
  );
  const below = classes.map(({ name, parts }, at) =>
    open.includes(name) ? following(parts, bars[at]?.from ?? 0) : ([] as Bar[]),
  );
  const longest = Math.max(Number(total.a_ns), Number(total.b_ns), 1);
  const scale = { reach: reachOf([...bars, ...below.flat()]), longest };
  return (
    <div class="table-scroll step-parts">
      <table aria-label="Difference of the mean steps">
        <PlainHead
          columns={[
            "class, name",
            "before and now",
            { number: "before, ms", title: names[0] },
            { number: "now, ms", title: names[1] },
            "change, added up",
            { number: "change, ms" },
            { number: "change" },
          ]}
        />
        {classes.map((of, at) => (
          <tbody key={of.name}>
            <ClassRow
              of={of}
              bar={bars[at] as Bar}
              scale={scale}
              isOpen={open.includes(of.name)}
              onToggle={() => toggle("open", of.name)}
            />
            {open.includes(of.name) && (
              <Names
                of={of}
                bars={below[at] ?? []}
                scale={scale}
                areAllShown={all.includes(of.name)}
                onToggle={() => toggle("all", of.name)}
              />
            )}
          </tbody>
        ))}
        <tfoot>
          <tr>
            <th scope="row">a step</th>
            <Numbers row={total} bar={{ from: 0, to: Number(total.change_ns) }} scale={scale} />
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

interface ClassProps {
  readonly of: PartClass;
  readonly bar: Bar;
  readonly scale: Scale;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

function ClassRow({ of, bar, scale, isOpen, onToggle }: ClassProps) {
  const { words } = partLook(of.name);
  // A class whose time has no name at all is not explained by opening it.
  const hasNames = of.parts.some(({ name }) => name !== null);
  return (
    <tr>
      <th scope="row">
        {hasNames ? (
          <button type="button" class="twist" aria-expanded={isOpen} onClick={onToggle}>
            <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span> <Swatch part={of.name} /> {words}
          </button>
        ) : (
          <span class="twist">
            <span aria-hidden="true">·</span> <Swatch part={of.name} /> {words}
          </span>
        )}
      </th>
      <Numbers row={of.row} bar={bar} scale={scale} />
    </tr>
  );
}

interface NamesProps {
  readonly of: PartClass;
  readonly bars: readonly Bar[];
  readonly scale: Scale;
  readonly areAllShown: boolean;
  readonly onToggle: () => void;
}

/** What a class consists of, the largest changes first. */
function Names({ of, bars, scale, areAllShown, onToggle }: NamesProps) {
  const shown = areAllShown ? of.parts : of.parts.slice(0, FIRST);
  const hidden = of.parts.length - shown.length;
  return (
    <>
      {shown.map((part, at) => (
        <tr key={String(part.name)} class="part">
          <th scope="row" title={exactCell("text", part.name)}>
            {part.name === null ? <i>no name recorded</i> : formatCell("text", part.name)}
          </th>
          <Numbers row={part} bar={bars[at] as Bar} scale={scale} />
        </tr>
      ))}
      {of.parts.length > FIRST && (
        <tr class="part">
          <th scope="row" colSpan={7}>
            <button type="button" class="small" aria-expanded={areAllShown} onClick={onToggle}>
              {hidden > 0 ? `Show ${formatCount(hidden)} more, with smaller changes` : "Show only the largest changes"}
            </button>
          </th>
        </tr>
      )}
    </>
  );
}

/** The bars and numbers of a row. */
function Numbers({ row, bar, scale }: { row: Row; bar: Bar; scale: Scale }) {
  return (
    <>
      <td class="bars-cell">
        <Times a={Number(row.a_ns)} b={Number(row.b_ns)} longest={scale.longest} />
      </td>
      <td class="number">
        <Milliseconds ns={row.a_ns as Num} />
      </td>
      <td class="number">
        <Milliseconds ns={row.b_ns as Num} />
      </td>
      <td class="bars-cell">
        <Change bar={bar} reach={scale.reach} />
      </td>
      <td class="number">
        <Milliseconds ns={row.change_ns as Num} isChange />
      </td>
      <td class="number">
        <Value unit="ratio" value={row.change_ratio} />
      </td>
    </>
  );
}

const HEIGHT = 28;

/** Both times, one above the other. */
function Times({ a, b, longest }: { a: number; b: number; longest: number }) {
  const width = (ns: number) => `${(ns / longest) * 100}%`;
  return (
    <svg class="chart" width="100%" height={HEIGHT} aria-hidden="true" focusable="false">
      <rect class="side-a" y="4" height="9" width={width(a)} />
      <rect fill={hatchOf("rising")} y="15" height="9" width={width(b)} />
      <rect class="side-b" y="15" height="9" width={width(b)} />
    </svg>
  );
}

/** A change, from where the ones before it end: warm and striped is more, cold and dotted is less. */
function Change({ bar, reach }: { bar: Bar; reach: Bar }) {
  const length = Math.max(reach.to - reach.from, 1);
  const x = (ns: number) => `${1 + ((ns - reach.from) / length) * 98}%`;
  const left = Math.min(bar.from, bar.to);
  const width = `${(Math.abs(bar.to - bar.from) / length) * 98}%`;
  const isMore = bar.to > bar.from;
  return (
    <svg class="chart" width="100%" height={HEIGHT} aria-hidden="true" focusable="false">
      <line class="grid" x1={x(0)} x2={x(0)} y1="0" y2={HEIGHT} />
      <line class="step-parts-sum" x1={x(bar.from)} x2={x(bar.from)} y1="0" y2="6" />
      <rect class={isMore ? "shift-more-3" : "shift-less-3"} x={x(left)} y="6" height="16" width={width} />
      <rect fill={hatchOf(isMore ? "rising" : "dots")} x={x(left)} y="6" height="16" width={width} />
      <line class="step-parts-sum" x1={x(bar.to)} x2={x(bar.to)} y1="6" y2={HEIGHT} />
    </svg>
  );
}
