// Names on slices that are wide enough for them.

import { printable } from "../../format/printable";
import { fitting, type Measure, shortName } from "../labels";
import type { RowKind } from "../model";
import type { Placed, Scene } from "../scene";
import { FLAG_SEVERAL, firstEndingAfter } from "../tile";

/** From this width on, in CSS pixels, a slice has its name. */
const WIDE_PX = 28;

/** No more names than this in a frame. */
const NAMES_MAX = 500;

const PADDING_PX = 4;

/** Rows whose items have names on them. */
const NAMED: ReadonlySet<RowKind> = new Set(["slices", "projected", "sampled_frames"]);

export function drawNames(scene: Scene, lines: readonly Placed[], measure: Measure): void {
  const { context, scale, width } = scene;
  context.font = scene.colours.theme.font;
  context.textBaseline = "middle";
  context.textAlign = "left";
  let drawn = 0;
  for (const { line, top } of lines) {
    if (line.row === null || !NAMED.has(line.kind)) continue;
    const isPale = line.kind === "sampled_frames";
    const middle = top + (line.height - 1) / 2 + 0.5;
    for (const piece of scene.pieces.get(line.row) ?? []) {
      const { tile } = piece;
      const to = Math.min(piece.to_ns, scale.view.end_ns);
      const wide = WIDE_PX * scale.ns_per_px;
      for (let at = firstEndingAfter(tile, Math.max(piece.from_ns, scale.view.start_ns)); at < tile.length; at++) {
        const start = tile.start_ns[at] ?? 0;
        if (start >= to) break;
        const dur = tile.dur_ns[at] ?? 0;
        if (dur < wide || (start < piece.begin_ns && !piece.isFirst)) continue;
        if (((tile.flags[at] ?? 0) & FLAG_SEVERAL) !== 0) continue;
        const left = Math.max(scale.x(Math.max(start, piece.from_ns)), 0);
        const right = Math.min(scale.x(Math.min(start + dur, piece.to_ns)), width);
        if (right - left < WIDE_PX) continue;
        const text = fitting(
          shortName(printable(tile.names.text(tile.name[at] ?? 0))),
          right - left - 2 * PADDING_PX,
          measure,
        );
        if (!text) continue;
        context.fillStyle = isPale ? scene.colours.theme.text : scene.colours.ink(tile, at);
        context.fillText(text, left + PADDING_PX, middle);
        if (++drawn >= NAMES_MAX) return;
      }
    }
  }
}
