import { expect, test } from "vitest";
import type { Line } from "../layout";
import type { CounterPart } from "../model";
import type { Scene } from "../scene";
import { Scale } from "../view";
import { counterText, drawCounters } from "./counters";

/** The paths that a counter of 0 to 100 ns is drawn with, a pixel a ns, and what is written. */
function drawn(part: Omit<CounterPart, "row" | "min" | "max">, unit: string | null) {
  const said: string[] = [];
  let path: string[] = [];
  const context = {
    beginPath: () => {
      path = [];
    },
    moveTo: (x: number, y: number) => path.push(`M${x},${y}`),
    lineTo: (x: number, y: number) => path.push(`${x},${y}`),
    rect: () => {},
    fill: () => {},
    stroke: () => said.push(path.join(" ")),
    strokeText: () => {},
    fillText: (text: string) => said.push(text),
  };
  const view = { start_ns: 0, end_ns: 100 };
  const counter = { row: -1, min: part.last, max: part.last, ...part };
  const scene = {
    context,
    width: 100,
    scale: new Scale(view, 100),
    colours: { theme: {} },
    counters: new Map([[-1, counter]]),
  };
  // Three pixels remain free above and below: heights are 0 to 100.
  const line = { row: -1, kind: "counter", height: 106, unit } as Partial<Line>;
  drawCounters(scene as unknown as Scene, [{ line: line as Line, top: -3 }]);
  return said;
}

test("a value holds until the next, the last one as long as it is known", () => {
  const values = { time_ns: [10, 40], last: [5, 10] };
  expect(drawn(values, "count")).toEqual(["M10,50 40,50 40,0 100,0", "10"]);
  expect(drawn({ ...values, end_ns: 70 }, "count")).toEqual(["M10,50 40,50 40,0 70,0", "10"]);
});

test("a share is drawn as one of the whole, and the highest is written as it is", () => {
  expect(drawn({ time_ns: [0], last: [0.25] }, "ratio")).toEqual(["M0,75 100,75", "25.0 %"]);
  expect(drawn({ time_ns: [0], last: [25] }, "%")).toEqual(["M0,75 100,75", "25 %"]);
});

test("values have the unit that recorders put behind the name", () => {
  const texts = [
    [3221225472, "bytes"],
    [1_500_000_000.4, "bytes/s"],
    [412500, "mW"],
    [1410, "MHz"],
    [12, "count"],
    [1.5, null],
  ] as const;
  expect(texts.map(([value, unit]) => counterText(value, unit))).toEqual([
    "3.00 GiB",
    "1.50 GB/s",
    "413 W",
    "1,410 MHz",
    "12",
    "1.50",
  ]);
});

test("a second value is a line with gaps where it is not known", () => {
  const beside = { own: "a", other: "b", values: [0.5, null, 0.25] };
  const [, ...lines] = drawn({ time_ns: [0, 10, 20], last: [1, 1, 1], beside, end_ns: 30 }, "ratio");
  expect(lines).toEqual(["M0,50 10,50", "M20,75 30,75", "100.0 %"]);
});
