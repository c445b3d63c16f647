// What the timeline shows, as a picture: its rows with their names.

import { save } from "../../components/charts/save";

/** Saves the part of the timeline that is on the screen as a PNG file, in the pixels of the screen. */
export function savePicture(name: string): void {
  const stage = document.querySelector<HTMLElement>(".timeline-stage");
  const drawn = stage?.querySelector("canvas");
  if (!stage || !drawn) return;
  const around = stage.getBoundingClientRect();
  const place = drawn.getBoundingClientRect();
  const scale = place.width > 0 ? drawn.width / place.width : 1;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(around.width * scale), Math.round(around.height * scale)];
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(scale, scale);
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, around.width, around.height);
  context.drawImage(drawn, place.left - around.left, place.top - around.top, place.width, place.height);
  for (const label of stage.querySelectorAll<HTMLElement>(".timeline-label")) drawLabel(context, label, around);
  canvas.toBlob((blob) => blob && save(blob, `${name}.png`));
}

/** A row's label where it stands, as far as it can be seen there. */
function drawLabel(context: CanvasRenderingContext2D, label: HTMLElement, around: DOMRect): void {
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
