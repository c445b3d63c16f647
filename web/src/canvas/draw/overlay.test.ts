import { expect, test } from "vitest";
import type { Placed, Scene } from "../scene";
import { Scale } from "../view";
import { drawOverlay } from "./overlay";

/** What is filled while a range over `rows` is drawn, as `top+height` of everything wider than a line. */
function veils(rows: readonly number[]): string[] {
  const filled: string[] = [];
  const fillRect = (_x: number, y: number, width: number, height: number) => {
    if (width > 1) filled.push(`${y}+${height}`);
  };
  const range = { start_ns: 20, end_ns: 60, rows };
  const scene = {
    context: { fillRect },
    width: 100,
    height: 200,
    scale: new Scale({ start_ns: 0, end_ns: 100 }, 100),
    colours: { theme: {} },
    emphasis: { hovered: null, selected: null, range, arrows: [], marks: [] },
  } as unknown as Scene;
  const line = (row: number | null, top: number) => ({ line: { key: `${top}`, row, height: 20, kind: "slices" }, top });
  drawOverlay(scene, [line(null, 40), line(7, 60), line(8, 80), line(9, 100)] as unknown as Placed[]);
  return filled;
}

test("a range lies over the rows that are summed up, or over all where it is of all", () => {
  // The ruler shows it in any case.
  expect(veils([7, 9])).toEqual(["60+20", "100+20", "0+40"]);
  expect(veils([])).toEqual(["0+200"]);
});
