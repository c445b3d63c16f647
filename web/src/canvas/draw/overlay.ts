// What is pointed out above the rows: the selected slice, what is below the pointer, arrows, a range, marks.

import { formatNs } from "../../format/units";
import type { Joined } from "../joined";
import type { PartOfRank, Slice } from "../model";
import { type Placed, type RangeOfRows, RULER_PX, type Scene } from "../scene";
import { chip } from "./chip";
import { drawMarks } from "./marks";

/** No more arrows than this are drawn. */
const ARROWS_MAX = 200;

export function drawOverlay(scene: Scene, lines: readonly Placed[]): void {
  const { theme } = scene.colours;
  const { hovered, selected, range, arrows, marks, joined } = scene.emphasis;

  if (joined) drawJoined(scene, lines, joined);
  for (const { line, top } of lines) {
    if (hovered?.line === line.key) outline(scene, top, line.height, hovered, theme.text, 1);
    if (selected && line.kind === "projected") drawProjections(scene, line.row, selected, top, line.height);
    if (selected && line.row === selected.row && line.kind !== "density") {
      const span = { start_ns: selected.start_ns, dur_ns: selected.dur_ns };
      outline(scene, top, line.height, span, theme.ground, 4);
      outline(scene, top, line.height, span, theme.text, 2);
    }
  }
  const rows = new Map(lines.filter(({ line }) => line.kind !== "density").map((each) => [each.line.row, each]));
  for (const { from, to } of arrows.slice(0, ARROWS_MAX)) arrow(scene, rows, from, to);
  if (range) drawRange(scene, range, lines);
  drawMarks(scene, marks);
}

/** The parts of a collective: boxes where they are seen, and a band from each to the next one below. */
function drawJoined(scene: Scene, lines: readonly Placed[], { ofRow, ofRank, askedOnRow }: Joined): void {
  const { theme } = scene.colours;
  let above: { readonly part: PartOfRank; readonly bottom: number } | null = null;
  for (const { line, top } of lines) {
    if (line.row === null || line.kind === "density") continue;
    const isRank = line.isHeader && line.kind === "projected";
    const part = isRank ? ofRank.get(line.rank) : ofRow.get(line.row);
    const asked = askedOnRow.get(line.row);
    for (const seen of [asked, part]) {
      if (!seen) continue;
      outline(scene, top, line.height, seen, theme.ground, 4);
      outline(scene, top, line.height, seen, theme.accent, 2);
    }
    if (!part) continue;
    // Pinned lines repeat what is below.
    if (above && above.part !== part && above.bottom <= top) band(scene, above.part, above.bottom, part, top);
    above = { part, bottom: top + line.height };
  }
}

/** Between one rank's part of a collective and the next one's. */
function band(scene: Scene, from: PartOfRank, bottom: number, to: PartOfRank, top: number): void {
  const { context, scale, width } = scene;
  // Far outside of the canvas a double has digits enough, and a path has not.
  const x = (ns: number) => Math.min(Math.max(scale.x(ns), -width), 2 * width);
  context.beginPath();
  context.moveTo(x(from.start_ns), bottom);
  context.lineTo(x(from.start_ns + from.dur_ns), bottom);
  context.lineTo(x(to.start_ns + to.dur_ns), top);
  context.lineTo(x(to.start_ns), top);
  context.fillStyle = scene.colours.theme.accent;
  context.globalAlpha = 0.14;
  context.fill();
  context.globalAlpha = 1;
  context.beginPath();
  context.moveTo(x(from.start_ns), bottom);
  context.lineTo(x(to.start_ns), top);
  context.strokeStyle = scene.colours.theme.accent;
  context.lineWidth = 1;
  context.stroke();
}

/** Where a selected range of the host is drawn on a device. */
function drawProjections(scene: Scene, row: number | null, { id }: Slice, top: number, height: number): void {
  for (const { tile, from_ns, to_ns } of scene.pieces.get(row ?? -1) ?? []) {
    const at = tile.slice.indexOf(id);
    const start_ns = tile.start_ns[at];
    if (start_ns === undefined || start_ns > to_ns || start_ns + (tile.dur_ns[at] ?? 0) < from_ns) continue;
    outline(scene, top, height, { start_ns, dur_ns: tile.dur_ns[at] ?? 0 }, scene.colours.theme.text, 2);
  }
}

function outline(
  scene: Scene,
  top: number,
  height: number,
  { start_ns, dur_ns }: { start_ns: number; dur_ns: number },
  colour: string,
  weight: number,
): void {
  const { context, scale, width } = scene;
  const left = Math.max(scale.x(start_ns), -10);
  const right = Math.min(scale.x(start_ns + dur_ns), width + 10);
  if (right < 0 || left > width) return;
  context.strokeStyle = colour;
  context.lineWidth = weight;
  context.strokeRect(left, top + 0.5, Math.max(right - left, 2), height - 2);
}

/** From the end of what caused it to the begin of what it caused, when the rows of both are on the screen. */
function arrow(scene: Scene, rows: ReadonlyMap<number | null, Placed>, from: Slice, to: Slice): void {
  const { context, scale, width } = scene;
  const source = rows.get(from.row);
  const target = rows.get(to.row);
  if (!source || !target) return;
  const x1 = scale.x(Math.min(from.start_ns + from.dur_ns, Math.max(to.start_ns, from.start_ns)));
  const x2 = scale.x(to.start_ns);
  if ((x1 < 0 && x2 < 0) || (x1 > width && x2 > width)) return;
  const y1 = source.top + source.line.height / 2;
  const y2 = target.top + target.line.height / 2;
  const bend = Math.min(Math.max(Math.abs(x2 - x1) / 2, 24), 160);
  for (const [colour, weight] of [
    [scene.colours.theme.ground, 4],
    [scene.colours.theme.text, 1.5],
  ] as const) {
    context.strokeStyle = colour;
    context.lineWidth = weight;
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2 - 3, y2);
    context.stroke();
  }
  context.fillStyle = scene.colours.theme.text;
  context.beginPath();
  context.moveTo(x2, y2);
  context.lineTo(x2 - 8, y2 - 4);
  context.lineTo(x2 - 8, y2 + 4);
  context.fill();
}

/** A veil over the rows that a range is of: over all of them where it was dragged over the ruler. Its ends are lines in any case. */
function drawRange(scene: Scene, range: RangeOfRows, lines: readonly Placed[]): void {
  const { context, scale, width, height } = scene;
  const left = Math.max(scale.x(range.start_ns), 0);
  const right = Math.min(scale.x(range.end_ns), width);
  if (right < left) return;
  const rows = new Set(range.rows);
  const over = lines.filter(({ line }) => line.row !== null && rows.has(line.row));
  const veils = rows.size === 0 ? [{ top: 0, height }] : over.map(({ line, top }) => ({ top, height: line.height }));
  context.fillStyle = scene.colours.theme.accent;
  context.globalAlpha = 0.14;
  for (const veil of veils) context.fillRect(left, veil.top, right - left, veil.height);
  if (rows.size > 0) context.fillRect(left, 0, right - left, RULER_PX);
  context.globalAlpha = 1;
  context.fillRect(Math.round(left), 0, 1, height);
  context.fillRect(Math.round(right), 0, 1, height);
  chip(scene, formatNs(Math.round(range.end_ns - range.start_ns)), right + 2, RULER_PX + 2);
}
