// The ruler: time since the start of the run, or since another moment, and the steps below it.

import { fitting, type Measure } from "../labels";
import { ticksOf } from "../ruler";
import { type Placed, RULER_PX, type Scene } from "../scene";

const TICKS_PX = 20;
/** Room around what is added to every label. */
const BASE_PX = 12;

/** Lines of the ruler's marks and bands of steps, behind the rows. */
export function drawGround(scene: Scene): void {
  const { context, width, height, scale } = scene;
  const { theme } = scene.colours;
  context.fillStyle = theme.ground;
  context.fillRect(0, 0, width, height);
  for (const step of visibleSteps(scene)) {
    if (step.number % 2 === 0) continue;
    const left = Math.max(scale.x(step.start_ns), 0);
    const right = Math.min(scale.x(step.end_ns), width);
    context.fillStyle = theme.band;
    context.fillRect(left, RULER_PX, Math.max(right - left, 1), height);
  }
  context.fillStyle = theme.line;
  for (const tick of ticksOf(scale.view, width, scene.zero_ns).ticks)
    context.fillRect(Math.round(scale.x(tick.time_ns)), 0, 1, height);
}

/** Headers of groups, as their labels have them. */
export function drawHeaders(scene: Scene, lines: readonly Placed[]): void {
  const { context, width } = scene;
  for (const { line, top } of lines) {
    if (!line.isHeader) continue;
    context.fillStyle = scene.colours.theme.header;
    context.fillRect(0, top, width, line.height);
    context.fillStyle = scene.colours.theme.line;
    context.fillRect(0, top, width, 1);
  }
}

/** The ruler itself, over whatever scrolls below it. */
export function drawRuler(scene: Scene, measure: Measure): void {
  const { context, width, scale } = scene;
  const { theme } = scene.colours;
  context.fillStyle = theme.ground;
  context.fillRect(0, 0, width, RULER_PX);
  context.font = theme.font;
  context.textBaseline = "middle";
  context.textAlign = "left";
  const { base, ticks } = ticksOf(scale.view, width, scene.zero_ns);
  const from = base ? BASE_PX + measure(base) : 0;
  if (base) {
    context.fillStyle = theme.text;
    context.fillText(base, BASE_PX / 2, TICKS_PX / 2);
  }
  for (const tick of ticks) {
    const x = Math.round(scale.x(tick.time_ns));
    if (x < from) continue;
    context.fillStyle = theme.line;
    context.fillRect(x, 0, 1, TICKS_PX);
    context.fillStyle = theme.faint;
    // A label that would be cut says another time than it is.
    if (x + 4 + measure(tick.label) <= width) context.fillText(tick.label, x + 4, TICKS_PX / 2);
  }
  for (const step of visibleSteps(scene)) {
    const left = Math.max(scale.x(step.start_ns), 0);
    const right = Math.min(scale.x(step.end_ns), width);
    context.fillStyle = theme.band;
    context.fillRect(left, TICKS_PX + 1, Math.max(right - left - 1, 1), RULER_PX - TICKS_PX - 2);
    const text = fitting(`step ${step.number}`, right - left - 8, measure);
    context.fillStyle = theme.text;
    if (text) context.fillText(text, left + 4, (TICKS_PX + RULER_PX) / 2);
  }
  context.fillStyle = theme.line;
  context.fillRect(0, RULER_PX - 1, width, 1);
}

/** Steps of the window; of very many only those that are a pixel apart. */
function visibleSteps(scene: Scene): Scene["steps"] {
  const { view, ns_per_px } = scene.scale;
  let before = Number.NEGATIVE_INFINITY;
  return scene.steps.filter((step) => {
    if (step.end_ns <= view.start_ns || step.start_ns >= view.end_ns) return false;
    if (step.start_ns - before < ns_per_px) return false;
    before = step.start_ns;
    return true;
  });
}
