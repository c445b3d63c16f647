import { expect, test } from "vitest";
import { encodeTiles } from "../../tests/encode_tiles";
import { CLASSES } from "../classes";
import { Colours, cssColour, lightness, parseRgb, shadeOf, type Theme } from "./colours";
import { decodeTiles, type Tile } from "./tile";

const theme: Theme = {
  classes: CLASSES.map((_, nth) => [20 * nth, 100, 200]),
  ground: "#fff",
  band: "#eee",
  header: "#def",
  line: "#ccc",
  text: "#111",
  faint: "#999",
  accent: "#06c",
  font: "12px sans-serif",
  isDark: false,
};
const tileOf = (...names: string[]): Tile =>
  decodeTiles(encodeTiles([names.map((name, at) => ({ start_ns: at, dur_ns: 1, name, class: 1 }))]))[0] as Tile;

test("colours are read as browsers write them", () => {
  expect(parseRgb("rgb(1, 2, 3)")).toEqual([1, 2, 3]);
  expect(parseRgb("rgba(1, 2, 3, 0.5)")).toEqual([1, 2, 3]);
  expect(parseRgb("#0a10ff")).toEqual([10, 16, 255]);
  expect(parseRgb("url(x)")).toEqual([128, 128, 128]);
});

test("a name has one colour, whatever stands beside it, and the page has the same", () => {
  const colours = new Colours(theme);
  const a = colours.colour(tileOf("sgemm", "copy"), 0);
  const b = colours.colour(tileOf("x", "y", "sgemm"), 2);
  expect(a).toBe(b);
  const css = `rgb(${a & 255}, ${(a >> 8) & 255}, ${(a >> 16) & 255})`;
  expect(cssColour(theme, 1, "sgemm")).toBe(css);
  const many = Array.from({ length: 100 }, (_, at) => `kernel ${at}`);
  const tile = tileOf(...many);
  expect(new Set(many.map((_, at) => colours.colour(tile, at))).size).toBe(8);
});

test("shades stay in range and differ", () => {
  const lights = Array.from({ length: 8 }, (_, shade) => lightness(shadeOf([200, 40, 90], shade)));
  expect([...lights].sort((a, b) => a - b)).toEqual(lights);
  for (const colour of [0, 255]) {
    for (let shade = 0; shade < 8; shade++) {
      for (const part of shadeOf([colour, colour, colour], shade)) expect(part >= 0 && part <= 255).toBe(true);
    }
  }
});

test("what a search does not find stands back", () => {
  const tile = tileOf("ampere_sgemm", "copy");
  const plain = new Colours(theme);
  const searched = new Colours(theme, "SGEMM");
  expect(searched.colour(tile, 0)).toBe(plain.colour(tile, 0));
  expect(searched.colour(tile, 1)).not.toBe(plain.colour(tile, 1));
  expect(searched.ink(tile, 1)).toBe("#999");
});
