// What is drawn, as the text of an SVG file: text stays text, which can be searched and edited.

import { printable } from "../../format/printable";
import type { Pen } from "./pen";

/** Where a text's line is below its top and its middle, as a part of its size: not every viewer knows baselines. */
const BELOW_TOP = 0.8;
const BELOW_MIDDLE = 0.35;

const ANCHORS: Partial<Record<CanvasTextAlign, string>> = { center: "middle", right: "end", end: "end" };

interface State {
  readonly fillStyle: Pen["fillStyle"];
  readonly strokeStyle: Pen["strokeStyle"];
  readonly globalAlpha: number;
  readonly lineWidth: number;
  readonly font: string;
  readonly textBaseline: CanvasTextBaseline;
  readonly textAlign: CanvasTextAlign;
  /** Groups that have begun since, and end with it. */
  readonly groups: number;
}

export class SvgPen implements Pen {
  fillStyle: Pen["fillStyle"] = "#000";
  strokeStyle: Pen["strokeStyle"] = "#000";
  globalAlpha = 1;
  lineWidth = 1;
  font = "10px sans-serif";
  textBaseline: CanvasTextBaseline = "alphabetic";
  textAlign: CanvasTextAlign = "start";
  private readonly parts: string[] = [];
  private readonly saved: State[] = [];
  private groups = 0;
  private clips = 0;
  private path: string[] = [];

  /** `id` tells what is clipped by this one from what is by another one of the file; `measure` is a canvas with the same fonts. */
  constructor(
    private readonly id: string,
    private readonly measure: Pick<Pen, "font" | "measureText">,
  ) {}

  /** The elements of all that was drawn. */
  get text(): string {
    return this.parts.join("\n");
  }

  save(): void {
    const { fillStyle, strokeStyle, globalAlpha, lineWidth, font, textBaseline, textAlign, groups } = this;
    this.saved.push({ fillStyle, strokeStyle, globalAlpha, lineWidth, font, textBaseline, textAlign, groups });
    this.groups = 0;
  }

  restore(): void {
    const state = this.saved.pop();
    if (!state) return;
    for (; this.groups > 0; this.groups--) this.parts.push("</g>");
    Object.assign(this, state);
  }

  clip(): void {
    const id = `${this.id}${this.clips++}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path.join("")}"/></clipPath><g clip-path="url(#${id})">`);
    this.groups++;
  }

  beginPath(): void {
    this.path = [];
  }

  moveTo(x: number, y: number): void {
    this.path.push(`M${short(x)} ${short(y)}`);
  }

  lineTo(x: number, y: number): void {
    this.path.push(`${this.path.length === 0 ? "M" : "L"}${short(x)} ${short(y)}`);
  }

  bezierCurveTo(...places: [number, number, number, number, number, number]): void {
    this.path.push(`C${places.map(short).join(" ")}`);
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.path.push(`M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`);
  }

  fill(): void {
    if (this.path.length > 0) this.parts.push(`<path d="${this.path.join("")}"${this.filled()}/>`);
  }

  stroke(): void {
    if (this.path.length > 0) this.parts.push(`<path d="${this.path.join("")}"${this.stroked()}/>`);
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    if (width <= 0 || height <= 0) return;
    this.parts.push(`<rect${placed(x, y, width, height)}${this.filled()}/>`);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.parts.push(`<rect${placed(x, y, Math.max(width, 0), Math.max(height, 0))}${this.stroked()}/>`);
  }

  fillText(text: string, x: number, y: number): void {
    this.write(text, x, y, this.filled());
  }

  strokeText(text: string, x: number, y: number): void {
    this.write(text, x, y, this.stroked());
  }

  measureText(text: string): { readonly width: number } {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }

  private write(text: string, x: number, y: number, look: string): void {
    const [, weight, size = "10", family = "sans-serif"] = /^(?:(\S+) )?([\d.]+)px (.*)$/.exec(this.font) ?? [];
    const down = { top: BELOW_TOP, middle: BELOW_MIDDLE }[this.textBaseline as string] ?? 0;
    const anchor = ANCHORS[this.textAlign];
    const attributes = [
      ` x="${short(x)}" y="${short(y + Number(size) * down)}" font-size="${size}" font-family="${escaped(family)}"`,
      weight === undefined || weight === "400" ? "" : ` font-weight="${escaped(weight)}"`,
      anchor === undefined ? "" : ` text-anchor="${anchor}"`,
    ];
    this.parts.push(`<text${attributes.join("")}${look}>${escaped(text)}</text>`);
  }

  private filled(): string {
    return this.paint("fill", this.fillStyle);
  }

  private stroked(): string {
    const width = this.lineWidth === 1 ? "" : ` stroke-width="${short(this.lineWidth)}"`;
    return ` fill="none"${this.paint("stroke", this.strokeStyle)}${width}`;
  }

  /** A colour and its opacity apart: not every viewer knows colours that have both. */
  private paint(name: "fill" | "stroke", style: Pen["fillStyle"]): string {
    const [, parts, alpha] = /^rgba\((.*), *([\d.]+)\)$/.exec(String(style)) ?? [];
    const colour = parts === undefined ? String(style) : `rgb(${parts})`;
    const opacity = this.globalAlpha * Number(alpha ?? 1);
    return ` ${name}="${escaped(colour)}"${opacity === 1 ? "" : ` ${name}-opacity="${short(opacity)}"`}`;
  }
}

/** A number with as many digits as can be seen. */
const short = (value: number): string => String(Math.round(value * 100) / 100);

const placed = (x: number, y: number, width: number, height: number): string =>
  ` x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** A text as XML has it; what XML cannot have, such as control characters and halves of letters, is written out or replaced. */
export function escaped(text: string): string {
  const known = printable(text).replace(/[&<>"]/g, (character) => ESCAPES[character] ?? "");
  return known.replace(
    /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|[\ufffe\uffff]/g,
    "\ufffd",
  );
}
