import { useEffect, useRef, useState } from "preact/hooks";
import { partLook } from "../../classes";
import { formatCount, formatNs } from "../../format/units";
import { param, setParams } from "../../state/route";
import { sliderOf } from "./cursor";
import { Figure } from "./Figure";
import { Legend } from "./Legend";
import { Pointed } from "./Pointed";
import { colourOf, paintOf, useRepaint } from "./painted";
import { type PartColumn, type Place, partsOf, placesOf, type RankBar, reachOf } from "./rank_bars";
import { labelEvery, ticks } from "./scale";
import { useWidth } from "./width";

interface Props {
  /** What a file of it is called. */
  readonly name: string;
  readonly label: string;
  /** What bars are made of. */
  readonly parts: readonly PartColumn[];
  /** In the order in which they stand side by side. */
  readonly bars: readonly RankBar[];
  /** Why a bar is shown of the ones that share its place: `that computes longest`. */
  readonly standsOut: string;
}

const HEIGHT = 220;
const BELOW = 20;
const LEFT = 64;
const TOP = 8;
/** How wide bars are at least, and at most. */
const NARROWEST = 2;
const WIDEST = 96;
/** From this width on bars have a gap between them, and textures. */
const WIDE = 8;
/** Room for the number of a rank. */
const LABEL = 44;

/**
 * Ranks side by side as bars of stacked parts: thousands of them on one canvas, which a slider goes through. The rank of a
 * bar that is chosen is the rank of every page.
 */
export function RankBars(props: Props) {
  return (
    <Figure name={props.name} title={<Legend parts={partsOf(props.bars, props.parts)} />} isCanvas>
      <Bars {...props} />
    </Figure>
  );
}

function Bars({ label, bars, standsOut }: Props) {
  const chosen = param("rank");
  const [box, width] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const room = Math.max(0, width - LEFT);
  const places = placesOf(bars, Math.max(1, room / NARROWEST));
  const each = Math.min(WIDEST, room / Math.max(1, places.length));
  const here = at !== null && at < places.length ? at : null;
  const paint = () => {
    if (canvas.current && width > 0) draw(canvas.current, width, places, each, here, chosen);
  };
  useEffect(paint);
  useRepaint(paint);

  const wordsAt = (at: number) => (places[at] ? wordsOf(places[at], standsOut) : "");
  const choose = (at: number | null) => {
    const place = at === null ? undefined : places[at];
    if (place) setParams({ rank: place.shown.rank === chosen ? null : place.shown.rank });
  };
  const slider = sliderOf(places.length, label, here, wordsAt, setAt);
  const placeOf = (event: MouseEvent) => {
    const place = Math.floor((event.offsetX - LEFT) / each);
    return place >= 0 && place < places.length ? place : null;
  };
  return (
    <div ref={box} class="columns-chart rank-bars">
      <div
        {...slider}
        onKeyDown={(event) => {
          if (event.key !== "Enter") slider.onKeyDown(event);
          else choose(here);
        }}
        onPointerMove={(event) => setAt(placeOf(event))}
        onClick={(event) => choose(placeOf(event))}
      >
        <canvas ref={canvas} aria-hidden="true" style={{ width: `${width}px`, height: `${HEIGHT + BELOW}px` }} />
      </div>
      <Pointed
        words={here === null ? null : wordsAt(here)}
        hint="Point at a bar, or use the arrow keys, to read it; click it, or press Enter, to filter every page to its rank."
      />
    </div>
  );
}

function wordsOf({ shown, first, last, count }: Place, standsOut: string): string {
  const group = typeof shown.row.group === "string" ? ` in process group ${shown.row.group}` : "";
  const some = [...shown.up, ...shown.down].filter(({ ns }) => ns > 0);
  const parts = some.map(({ part, ns }) => `${partLook(part).words} ${formatNs(ns)}`);
  const cut = shown.row.is_complete === false ? ", cut by recording" : "";
  const among =
    count > 1
      ? `; of the ${formatCount(count)} bars from rank ${first.rank} to rank ${last.rank} the one ${standsOut}`
      : "";
  return `rank ${shown.rank}${group}: ${parts.join(", ") || "none"}${cut}${among}`;
}

function draw(
  canvas: HTMLCanvasElement,
  width: number,
  places: readonly Place[],
  each: number,
  here: number | null,
  chosen: string | undefined,
): void {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round((HEIGHT + BELOW) * ratio);
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(ratio, ratio);
  const [up, down] = reachOf(places.map(({ shown }) => shown));
  const marks = ticks(up + down, 4);
  const scale = (HEIGHT - TOP) / Math.max(1, up + down);
  const axis = TOP + up * scale;
  const text = colourOf("--dim");
  context.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  context.textBaseline = "middle";
  context.textAlign = "right";
  const step = marks[1] ?? 1;
  for (let ns = -Math.floor(down / step) * step; ns <= up; ns += step) {
    const y = Math.round(axis - ns * scale) + 0.5;
    context.fillStyle = colourOf("--line");
    context.fillRect(LEFT, y - 0.5, width - LEFT, 1);
    context.fillStyle = text;
    context.fillText(formatNs(Math.abs(ns)), LEFT - 6, y);
  }
  const x = (at: number) => LEFT + at * each;
  const mark = (at: number) => {
    context.fillStyle = colourOf("--chosen");
    context.fillRect(x(at), 0, Math.max(each, 2), HEIGHT);
  };
  if (here !== null) mark(here);
  places.forEach(({ shown }, at) => {
    if (shown.rank === chosen) mark(at);
  });
  const paints = new Map<string, CanvasPattern | string>();
  const paintOfPart = (part: string) => {
    const known = paints.get(part) ?? paintOf(partLook(part), ratio, each >= WIDE);
    paints.set(part, known);
    return known;
  };
  const gap = each >= WIDE ? each * 0.08 : 0;
  context.save();
  // Textures are made of the pixels of the device.
  context.setTransform(1, 0, 0, 1, 0, 0);
  // From whole pixel to whole pixel, so that no seam is between neighbours.
  const box = (x: number, y: number, width: number, height: number) => {
    const left = Math.round(x * ratio);
    context.fillRect(left, y * ratio, Math.round((x + width) * ratio) - left, height * ratio);
  };
  places.forEach(({ shown }, at) => {
    const [left, wide] = [x(at) + gap, each - 2 * gap];
    let y = axis;
    for (const { part, ns } of shown.up) {
      context.fillStyle = paintOfPart(part);
      y -= Number(ns) * scale;
      box(left, y, wide, Number(ns) * scale);
    }
    y = axis;
    for (const { part, ns } of shown.down) {
      context.fillStyle = paintOfPart(part);
      box(left, y, wide, Number(ns) * scale);
      y += Number(ns) * scale;
    }
  });
  context.restore();
  context.fillStyle = text;
  context.textAlign = "center";
  const every = labelEvery(places.length, each * places.length, LABEL);
  places.forEach(({ shown }, at) => {
    if (at % every === 0 && x(at) + LABEL / 2 < width) context.fillText(shown.rank, x(at) + each / 2, HEIGHT + 11);
  });
}
