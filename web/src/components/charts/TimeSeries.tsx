import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Row, Unit } from "../../api/types";
import { axisLabels } from "../../canvas/ruler";
import type { ClassName } from "../../classes";
import { formatCell } from "../../format/cell";
import { formatNs } from "../../format/units";
import { Value } from "../Value";
import { sliderOf } from "./cursor";
import { colourOf, useRepaint } from "./painted";
import { BYTE_STEPS, columnsOf, dragged, indexAt, NS_STEPS, type Stretch } from "./series";
import { useWidth } from "./width";

/** One line of a chart. */
export interface Series {
  /** The column of the rows. */
  readonly name: string;
  readonly words: string;
  readonly colour: ClassName;
  /** True for a line that is dashed, so that it can be told from another without its colour. */
  readonly isDashed?: boolean;
}

/** Something that lies in time, drawn behind the lines. */
export interface Mark extends Stretch {
  readonly words: string;
}

interface Props {
  readonly label: string;
  readonly rows: readonly Row[];
  /** The column that says when a row begins. It holds until the next. */
  readonly time: string;
  /** What the chart shows. */
  readonly within: Stretch;
  /** Until when the last row holds. */
  readonly until_ns: number;
  readonly unit: Unit;
  readonly series: readonly Series[];
  readonly marks?: readonly Mark[];
  readonly range: Stretch | null;
  /** A stretch was dragged over; null when the chart was clicked. */
  readonly onRange: (range: Stretch | null) => void;
}

const HEIGHT = 240;

/** Values over time as stepped lines, with steps marked. Dragging over it chooses a stretch of time. */
export function TimeSeries(props: Props) {
  const { label, rows, time, within, until_ns, unit, series, range } = props;
  const [box, width] = useWidth<HTMLDivElement>();
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  // What the drawing reads when it happens, so that it need not be built anew.
  const latest = useRef(props);
  latest.current = props;

  const hasRoom = width > 0;
  const key = series.map((line) => line.name).join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows are of one answer, series are told by their names
  useEffect(() => {
    if (!place.current || !hasRoom) return;
    const data = columnsOf(
      rows,
      time,
      series.map((line) => line.name),
      until_ns,
    );
    const drawn = new uPlot(optionsOf(latest, width, setHovered), data as uPlot.AlignedData, place.current);
    plot.current = drawn;
    return () => {
      plot.current = null;
      drawn.destroy();
    };
  }, [rows, time, within.start_ns, within.end_ns, unit, key, hasRoom]);
  useEffect(() => {
    if (width > 0) plot.current?.setSize({ width, height: HEIGHT });
  }, [width]);
  useEffect(() => {
    if (plot.current && plot.current.status === 1) showRange(plot.current, range);
  }, [range]);
  useRepaint(() => plot.current?.redraw());

  const wordsAt = (at: number) => {
    const values = series.map((line) => `${line.words} ${formatCell(unit, rows[at]?.[line.name])}`);
    return `at ${formatCell("ns", rows[at]?.[time])}: ${values.join(", ")}`;
  };
  const shown = hovered === null || hovered > until_ns ? -1 : indexAt(rows, time, hovered);
  const slider = sliderOf(rows.length, label, shown < 0 ? null : shown, wordsAt, (at) => {
    const time_ns = Number(rows[at]?.[time]);
    setHovered(time_ns);
    // Without telling it to itself: a pixel is a little earlier or later than the row.
    plot.current?.setCursor({ left: plot.current.valToPos(time_ns, "x"), top: 0 }, false);
  });
  const row = rows[shown];
  return (
    <div ref={box} class="time-series">
      <div ref={place} {...slider} />
      <ul class="legend">
        <li class="when">
          {hovered === null ? "Drag to select a range; arrow keys read values" : `at ${formatNs(Math.round(hovered))}`}
        </li>
        {series.map((line) => (
          <li key={line.name}>
            <svg class="line-swatch" width="22" height="10" aria-hidden="true">
              <line class={`stroke-${line.colour}${line.isDashed ? " dashed" : ""}`} x1="0" y1="5" x2="22" y2="5" />
            </svg>{" "}
            {line.words} {row && <Value unit={unit} value={row[line.name]} />}
          </li>
        ))}
      </ul>
    </div>
  );
}

function optionsOf(
  latest: { readonly current: Props },
  width: number,
  onHover: (at_ns: number | null) => void,
): uPlot.Options {
  const { within, unit, series } = latest.current;
  const colour = (name: string) => colourOf(`--${name}`);
  const axis = { stroke: () => colour("dim"), font: "11px system-ui, sans-serif", ticks: { show: false } };
  const grid = { stroke: () => colour("line"), width: 1 };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    padding: [14, 8, 0, 0],
    scales: {
      x: { time: false, range: [within.start_ns, within.end_ns] },
      y: { range: (_, __, most) => [0, most > 0 ? most * 1.05 : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 28,
        space: 80,
        incrs: NS_STEPS,
        values: (_, ns, __, ___, step) => axisLabels(ns, step),
      },
      {
        ...axis,
        grid,
        size: 74,
        ...(unit === "bytes" ? { incrs: BYTE_STEPS } : {}),
        values: (_, values) => values.map((value) => formatCell(unit, value)),
      },
    ],
    series: [
      {},
      ...series.map((line) => ({
        label: line.words,
        stroke: () => colour(`class-${line.colour}`),
        width: 1.5,
        dash: line.isDashed ? [5, 4] : undefined,
        points: { show: false },
        paths: uPlot.paths.stepped?.({ align: 1 }),
      })),
    ],
    cursor: { drag: { x: true, y: false, setScale: false }, y: false, points: { show: false } },
    hooks: {
      drawClear: [(drawn) => drawMarks(drawn, latest.current.marks ?? [])],
      // Only what has been drawn knows where a moment is.
      draw: [(drawn) => showRange(drawn, latest.current.range)],
      setCursor: [
        (drawn) => {
          const left = drawn.cursor.left ?? -1;
          onHover(left < 0 ? null : drawn.posToVal(left, "x"));
        },
      ],
      setSelect: [
        (drawn) => {
          const { left, width } = drawn.select;
          const { within, onRange } = latest.current;
          onRange(dragged(drawn.posToVal(left, "x"), drawn.posToVal(left + width, "x"), within));
        },
      ],
    },
  };
}

/** Marks that are narrower than this, in pixels, would be nothing but lines. */
const LEAST_MARK = 3;

/** Every other mark as a band, with its words where they have room. */
function drawMarks(drawn: uPlot, marks: readonly Mark[]): void {
  const { ctx, bbox } = drawn;
  const x = (ns: number) => Math.min(Math.max(drawn.valToPos(ns, "x", true), bbox.left), bbox.left + bbox.width);
  const [band, line, dim] = [colourOf("--panel"), colourOf("--line"), colourOf("--dim")];
  ctx.save();
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textBaseline = "bottom";
  ctx.textAlign = "left";
  for (const [at, mark] of marks.entries()) {
    const [from, to] = [x(mark.start_ns), x(mark.end_ns)];
    if (to - from < LEAST_MARK * devicePixelRatio) continue;
    ctx.fillStyle = band;
    if (at % 2 === 0) ctx.fillRect(from, bbox.top, to - from, bbox.height);
    ctx.fillStyle = line;
    ctx.fillRect(from, bbox.top, devicePixelRatio, bbox.height);
    ctx.fillStyle = dim;
    if (ctx.measureText(mark.words).width < to - from - 4) ctx.fillText(mark.words, from + 2, bbox.top - 1);
  }
  ctx.restore();
}

function showRange(drawn: uPlot, range: Stretch | null): void {
  const [left, right] = range
    ? [drawn.valToPos(range.start_ns, "x"), drawn.valToPos(range.end_ns, "x")].map((x) =>
        Math.min(Math.max(x, 0), drawn.bbox.width / devicePixelRatio),
      )
    : [0, 0];
  const height = range ? drawn.bbox.height / devicePixelRatio : 0;
  drawn.setSelect({ left: left ?? 0, top: 0, width: (right ?? 0) - (left ?? 0), height }, false);
}
