// Lines at the moments that a person has marked.

import { printable } from "../../format/printable";
import { formatNs } from "../../format/units";
import { middleCut } from "../labels";
import { inOrder, type Mark } from "../marks";
import { RULER_PX, type Scene } from "../scene";
import { chip } from "./chip";

/** A note takes this much room at most, and less where the next mark is near. */
const NOTE_PX = 220;
/** Around a number and its note. */
const PADDING_PX = 30;

/** Lines at the marks, numbered in their order, each with its distance to the one before and its note. */
export function drawMarks(scene: Scene, marks: readonly Mark[]): void {
  const { context, width, height, scale } = scene;
  const { theme } = scene.colours;
  const ordered = inOrder(marks);
  for (const [at, mark] of ordered.entries()) {
    const x = scale.x(mark.time_ns);
    if (x < 0 || x > width) continue;
    context.fillStyle = theme.accent;
    context.fillRect(Math.round(x), RULER_PX - 14, 1, height);
    context.beginPath();
    context.moveTo(x - 5, RULER_PX - 18);
    context.lineTo(x + 6, RULER_PX - 18);
    context.lineTo(x + 0.5, RULER_PX - 8);
    context.fill();
    const next = ordered[at + 1];
    const words = wordsOf(scene, ordered, at, next === undefined ? NOTE_PX : scale.x(next.time_ns) - x);
    if (words) chip(scene, words, x + 8, RULER_PX - 19);
  }
}

/** A mark alone has no number, unless it has a note. */
function wordsOf({ context, colours }: Scene, marks: readonly Mark[], at: number, room: number): string {
  const mark = marks[at];
  if (!mark || (marks.length === 1 && mark.note === "")) return "";
  const before = marks[at - 1];
  const distance = before === undefined ? "" : ` +${formatNs(Math.round(mark.time_ns - before.time_ns))}`;
  const number = `${at + 1}${distance}`;
  if (mark.note === "") return number;
  context.font = colours.theme.font;
  const measure = (text: string) => context.measureText(text).width;
  const forNote = Math.min(NOTE_PX, room - measure(number) - PADDING_PX);
  const note = middleCut(printable(mark.note.replace(/\s+/g, " ")), forNote, measure);
  return note ? `${number} · ${note}` : number;
}
