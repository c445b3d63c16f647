// What the timeline shows, as a picture: its rows with their names.

import type { Pen } from "../../canvas/draw/pen";
import { escaped, SvgPen } from "../../canvas/draw/svg_pen";
import { save } from "../../components/charts/save";

/** The parts of the page that a picture has. */
interface Stage {
  readonly stage: HTMLElement;
  readonly drawn: HTMLCanvasElement;
  readonly around: DOMRect;
  readonly place: DOMRect;
  readonly ground: string;
}

function stageOf(): Stage | null {
  const stage = document.querySelector<HTMLElement>(".timeline-stage");
  const drawn = stage?.querySelector("canvas");
  if (!stage || !drawn) return null;
  const ground = getComputedStyle(document.body).backgroundColor;
  return { stage, drawn, around: stage.getBoundingClientRect(), place: drawn.getBoundingClientRect(), ground };
}

/** Saves the part of the timeline that is on the screen as a PNG file, in the pixels of the screen. */
export function savePixels(name: string): void {
  const shown = stageOf();
  if (!shown) return;
  const { drawn, around, place, ground } = shown;
  const scale = place.width > 0 ? drawn.width / place.width : 1;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(around.width * scale), Math.round(around.height * scale)];
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(scale, scale);
  context.fillStyle = ground;
  context.fillRect(0, 0, around.width, around.height);
  context.drawImage(drawn, place.left - around.left, place.top - around.top, place.width, place.height);
  drawLabels(context, shown);
  canvas.toBlob((blob) => blob && save(blob, `${name}.png`));
}

/** Saves the same as an SVG file, in which texts are texts; `draw` draws what is on the canvas. */
export function saveShapes(name: string, draw: (pen: Pen) => void): void {
  const shown = stageOf();
  const measure = document.createElement("canvas").getContext("2d");
  if (!shown || !measure) return;
  const { around, place, ground } = shown;
  const rows = new SvgPen("row", measure);
  draw(rows);
  const labels = new SvgPen("label", measure);
  drawLabels(labels, shown);
  const size = ({ width, height }: DOMRect) => `width="${width}" height="${height}"`;
  const text = [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size(around)} viewBox="0 0 ${around.width} ${around.height}">`,
    `<title>${escaped(name)}</title>`,
    `<rect ${size(around)} fill="${ground}"/>`,
    `<svg x="${place.left - around.left}" y="${place.top - around.top}" ${size(place)}>`,
    rows.text,
    "</svg>",
    labels.text,
    "</svg>",
  ].join("\n");
  save(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`);
}

function drawLabels(pen: Pen, { stage, around }: Stage): void {
  const labels = stage.querySelector<HTMLElement>(".timeline-labels");
  if (!labels) return;
  const { left, top, width, height } = labels.getBoundingClientRect();
  pen.fillStyle = getComputedStyle(labels).backgroundColor;
  pen.fillRect(left - around.left, top - around.top, width, height);
  for (const label of stage.querySelectorAll<HTMLElement>(".timeline-label")) drawLabel(pen, label, around);
}

/** A row's label where it stands, as far as it can be seen there. */
function drawLabel(context: Pen, label: HTMLElement, around: DOMRect): void {
  const name = label.querySelector<HTMLElement>(".timeline-name");
  const area = label.closest(".timeline-label-area");
  if (!name || !area) return;
  const row = label.getBoundingClientRect();
  const text = name.getBoundingClientRect();
  const seen = area.getBoundingClientRect();
  const style = getComputedStyle(name);
  context.save();
  context.beginPath();
  context.rect(seen.left - around.left, seen.top - around.top, seen.width, seen.height);
  context.clip();
  context.fillStyle = getComputedStyle(label).backgroundColor;
  context.fillRect(row.left - around.left, row.top - around.top, row.width, row.height);
  context.beginPath();
  context.rect(text.left - around.left, text.top - around.top, text.width, text.height);
  context.clip();
  context.fillStyle = style.color;
  context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  context.textBaseline = "middle";
  context.fillText(name.textContent ?? "", text.left - around.left, text.top - around.top + text.height / 2);
  context.restore();
}
