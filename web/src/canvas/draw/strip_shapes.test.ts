import { expect, test } from "vitest";
import { fillRuns } from "./strip_shapes";

test("neighbours that show the same are one shape, and shapes of a colour one path", () => {
  const drawn: string[] = [];
  let rects: string[] = [];
  const pen = {
    fillStyle: "",
    globalAlpha: 1,
    beginPath: () => {
      rects = [];
    },
    rect: (x: number, y: number, width: number, height: number) => rects.push(`${x}+${width} at ${y}+${height}`),
    fill() {
      drawn.push(`${this.fillStyle} ${this.globalAlpha}: ${rects.join(", ")}`);
    },
  };
  const [red, half] = [0xff0000ff, 0x80ff0000].map((pixel) => pixel >>> 0) as [number, number];
  fillRuns(pen, Uint32Array.from([0, red, red, half, red, 0, 0, half]), 0.5, 10, 20);
  expect(drawn).toEqual([
    "rgb(255, 0, 0) 1: 0.5+1 at 10+20, 2+0.5 at 10+20",
    `rgb(0, 0, 255) ${128 / 255}: 1.5+0.5 at 10+20, 3.5+0.5 at 10+20`,
  ]);
});
