import type { Row } from "../../api/types";
import { BarList } from "../../components/charts/BarList";
import { Figure } from "../../components/charts/Figure";
import { XyChart } from "../../components/charts/XyChart";
import { Empty } from "../../components/Notice";
import { formatCell } from "../../format/cell";
import { formatCount } from "../../format/units";
import { setParams } from "../../state/route";
import type { AnswerColumn, AnswerTable } from "./answer_table";
import { type Axes, axesOf, type PlotKind, withBars } from "./plot";

interface Props {
  readonly kind: PlotKind;
  readonly table: AnswerTable;
  /** Its rows in their order. */
  readonly rows: readonly Row[];
  readonly chosen: { readonly x: string | undefined; readonly y: string | undefined };
}

/** A result as a picture. */
export function Plot({ kind, table, rows, chosen }: Props) {
  const axes = axesOf(kind, table, chosen);
  if (typeof axes === "string") return <Empty>{axes}</Empty>;
  const [x, y] = kind === "bars" ? ["Names", "Lengths"] : ["From left to right", "Upwards"];
  return (
    <>
      <div class="choices">
        <Axis label={x} name="x" value={axes.x} choices={axes.xChoices} />
        <Axis label={y} name="y" value={axes.y} choices={axes.yChoices} />
      </div>
      {kind === "bars" ? <Bars rows={rows} axes={axes} /> : <Points kind={kind} rows={rows} axes={axes} />}
    </>
  );
}

function Axis(props: { label: string; name: string; value: AnswerColumn; choices: readonly AnswerColumn[] }) {
  const { label, name, value, choices } = props;
  return (
    <label class="choice">
      {label}{" "}
      <select value={value.name} onChange={(event) => setParams({ [name]: event.currentTarget.value })}>
        {choices.map((column) => (
          <option key={column.name} value={column.name}>
            {column.label}
          </option>
        ))}
      </select>
    </label>
  );
}

function Bars({ rows, axes }: { rows: readonly Row[]; axes: Axes }) {
  const { x, y } = axes;
  const shown = withBars(rows, axes);
  if (shown.length === 0) return <Empty>No row has a number in this column.</Empty>;
  const bars = shown.map((row) => ({ name: formatCell(x.unit, row[x.name]), value: row[y.name] ?? null }));
  const some = shown.length < rows.length ? `, ${formatCount(shown.length)} of ${formatCount(rows.length)} rows` : "";
  const label = `${y.label} by ${x.label}${some}`;
  return (
    <figure>
      <figcaption>{label}</figcaption>
      <BarList
        label={label}
        unit={y.unit}
        bars={bars}
        isDevice={false}
        isPath={x.name === "file" || x.name === "path"}
      />
    </figure>
  );
}

function Points({ kind, rows, axes }: { kind: PlotKind; rows: readonly Row[]; axes: Axes }) {
  const { x, y } = axes;
  const label = `${y.label} by ${x.label}`;
  return (
    <Figure name="query" isCanvas={true} title={label}>
      <XyChart label={label} rows={rows} x={x} y={y} isLine={kind === "line"} />
    </Figure>
  );
}
