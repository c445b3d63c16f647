// The whole run in small: how busy it is, where a search hits, the marks, and which part is shown.

import type { Theme } from "../colours";
import type { Mark } from "../marks";
import type { StepBand } from "../scene";
import { Scale, type Span } from "../view";

export interface MinimapScene {
  readonly context: CanvasRenderingContext2D;
  readonly width: number;
  readonly height: number;
  readonly theme: Theme;
  readonly span: Span;
  readonly view: Span;
  readonly steps: readonly StepBand[];
  readonly marks: readonly Mark[];
  readonly range: Span | null;
  /** How many hits begin in each of equal parts of the run; empty without a search. */
  readonly hits: readonly number[];
  /** How busy each of equal parts of the run is, 0 to 1. */
  readonly busy: readonly number[];
}

export function drawMinimap(scene: MinimapScene): void {
  const { context, width, height, theme } = scene;
  const scale = new Scale(scene.span, width);
  context.fillStyle = theme.ground;
  context.fillRect(0, 0, width, height);
  let before = Number.NEGATIVE_INFINITY;
  context.fillStyle = theme.band;
  for (const step of scene.steps) {
    const left = scale.x(step.start_ns);
    if (left - before < 2) continue;
    before = left;
    context.fillRect(left, 0, Math.max(scale.x(step.end_ns) - left - 1, 1), height);
  }
  context.fillStyle = theme.faint;
  context.globalAlpha = 0.55;
  scene.busy.forEach((share, part) => {
    const tall = share * (height - 4);
    const left = (part * width) / scene.busy.length;
    context.fillRect(left, height - tall, width / scene.busy.length + 0.5, tall);
  });
  context.globalAlpha = 1;
  const most = Math.max(...scene.hits, 0);
  context.fillStyle = theme.accent;
  scene.hits.forEach((count, part) => {
    if (count === 0) return;
    const tall = Math.max((Math.log1p(count) / Math.log1p(most)) * (height - 4), 4);
    context.fillRect((part * width) / scene.hits.length, height - tall, Math.max(width / scene.hits.length, 1), tall);
  });
  for (const { time_ns } of scene.marks) context.fillRect(Math.round(scale.x(time_ns)), 0, 1, height);
  if (scene.range) {
    context.globalAlpha = 0.3;
    const left = scale.x(scene.range.start_ns);
    context.fillRect(left, 0, Math.max(scale.x(scene.range.end_ns) - left, 1), height);
    context.globalAlpha = 1;
  }
  const left = Math.max(scale.x(scene.view.start_ns), 0);
  const right = Math.min(Math.max(scale.x(scene.view.end_ns), left + 3), width);
  context.fillStyle = theme.text;
  context.globalAlpha = 0.12;
  context.fillRect(0, 0, left, height);
  context.fillRect(right, 0, width - right, height);
  context.globalAlpha = 1;
  context.strokeStyle = theme.text;
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, 0.5, Math.max(right - left - 1, 2), height - 1);
}
