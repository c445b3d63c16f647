import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Column, Row } from "../../api/types";
import { axisLabels } from "../../canvas/ruler";
import { formatCell } from "../../format/cell";
import { Value } from "../Value";
import { sliderOf } from "./cursor";
import { colourOf, useRepaint } from "./painted";
import { closest, type Points, pointsOf, withRoom } from "./points";
import { BYTE_STEPS, NS_STEPS } from "./series";
import { useWidth } from "./width";

interface Props {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly x: Column;
  readonly y: Column;
  /** True where points are joined by a line. */
  readonly isLine: boolean;
}

const HEIGHT = 320;

/** One number of each row against another, as points or as a line. */
export function XyChart({ label, rows, x, y, isLine }: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [pointed, point] = useState<number | null>(null);
  const points = useMemo(() => pointsOf(rows, x.name, y.name), [rows, x.name, y.name]);

  const hasRoom = width > 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: columns are told by their names and units, the width is set below
  useEffect(() => {
    point(null);
    if (!place.current || !hasRoom || points.xs.length === 0) return;
    const data = [points.xs, points.ys] as unknown as uPlot.AlignedData;
    const drawn = new uPlot(optionsOf(points, x, y, isLine, width, point), data, place.current);
    plot.current = drawn;
    return () => {
      plot.current = null;
      drawn.destroy();
    };
  }, [points, x.unit, y.unit, isLine, hasRoom]);
  useEffect(() => {
    if (width > 0) plot.current?.setSize({ width, height: HEIGHT });
  }, [width]);
  useRepaint(() => plot.current?.redraw());

  const wordsAt = (at: number) => {
    const row = points.rows[at];
    return `${x.label} ${formatCell(x.unit, row?.[x.name])}, ${y.label} ${formatCell(y.unit, row?.[y.name])}`;
  };
  const slider = sliderOf(points.xs.length, label, pointed, wordsAt, (at) => {
    point(at);
    const [left, top] = [
      plot.current?.valToPos(points.xs[at] ?? 0, "x"),
      plot.current?.valToPos(points.ys[at] ?? 0, "y"),
    ];
    // Without telling it to itself: of points at the same place it knows only one.
    plot.current?.setCursor({ left: left ?? -10, top: top ?? -10 }, false);
  });
  const row = pointed === null ? undefined : points.rows[pointed];
  if (points.xs.length === 0) return <p class="notice empty">No row has both numbers.</p>;
  return (
    <div ref={box} class="time-series xy-chart">
      <p class="dim axis-name">{y.label} ↑</p>
      <div ref={place} {...slider} />
      <p class="dim axis-name x">{x.label} →</p>
      <p class="legend">
        {row ? (
          <>
            <span>
              {x.label} <Value unit={x.unit} value={row[x.name]} />
            </span>
            <span>
              {y.label} <Value unit={y.unit} value={row[y.name]} />
            </span>
          </>
        ) : (
          <span class="when">Point at the chart, or use arrow keys, to read values</span>
        )}
      </p>
    </div>
  );
}

function optionsOf(
  all: Points,
  x: Column,
  y: Column,
  isLine: boolean,
  width: number,
  onPoint: (at: number | null) => void,
): uPlot.Options {
  const colour = (name: string) => colourOf(`--${name}`);
  const axis = (column: Column): uPlot.Axis => ({
    stroke: () => colour("dim"),
    font: "11px system-ui, sans-serif",
    ticks: { show: false },
    grid: { stroke: () => colour("line"), width: 1 },
    ...marksOf(column),
  });
  const range = (_: uPlot, least: number, most: number) => withRoom(least, most);
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    padding: [10, 12, 0, 0],
    scales: { x: { time: false, range }, y: { range } },
    axes: [
      { ...axis(x), size: 28, space: 80 },
      { ...axis(y), size: 74 },
    ],
    series: [
      {},
      {
        label: y.label,
        stroke: () => colour("class-host-op"),
        width: 1.5,
        ...(isLine ? {} : { paths: () => null }),
        points: { show: !isLine, size: 6, fill: () => colour("class-host-op") },
      },
    ],
    cursor: {
      drag: { x: false, y: false },
      points: { size: 9 },
      // Of points it is the closest, of a line the one at that x.
      ...(isLine ? {} : { dataIdx: (drawn, series, at) => (series === 0 ? at : pointedAt(drawn, all)) }),
    },
    hooks: {
      setCursor: [
        ({ cursor }) => onPoint(cursor.left === undefined || cursor.left < 0 ? null : (cursor.idxs?.[1] ?? null)),
      ],
    },
  };
}

function pointedAt(drawn: uPlot, points: Points): number {
  const { left = -1, top = -1 } = drawn.cursor;
  const at = { x: drawn.posToVal(left, "x"), y: drawn.posToVal(top, "y") };
  const perPixel = (axis: "x" | "y") => Math.abs(drawn.posToVal(1, axis) - drawn.posToVal(0, axis));
  return Math.max(0, closest(points, at, { x: 1 / perPixel("x"), y: 1 / perPixel("y") }));
}

/** Where an axis has marks, and what they say. */
function marksOf({ unit }: Column): Pick<uPlot.Axis, "incrs" | "values"> {
  if (unit === "ns") return { incrs: NS_STEPS, values: (_, marks, __, ___, step) => axisLabels(marks, step) };
  // Two decimals are too few between marks that are close.
  const shown = unit === "plain" || unit === "id" ? "number" : unit;
  const values: uPlot.Axis["values"] = (_, marks) => marks.map((mark) => formatCell(shown, mark));
  return unit === "bytes" ? { incrs: BYTE_STEPS, values } : { values };
}
