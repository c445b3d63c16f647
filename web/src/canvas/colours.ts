// Colours of items: the class decides the hue, the name one of a few shades of it, the search what stands back.

import { CLASSES } from "../classes";
import { hashOf, type Tile } from "./tile";

/** Shades of a class. */
const SHADES = 8;

export type Rgb = readonly [red: number, green: number, blue: number];

/** Everything that is drawn in, as the page's styles have it. */
export interface Theme {
  readonly classes: readonly Rgb[];
  readonly ground: string;
  readonly band: string;
  readonly header: string;
  readonly line: string;
  readonly text: string;
  readonly faint: string;
  readonly accent: string;
  readonly font: string;
  readonly isDark: boolean;
}

/** `rgb(1, 2, 3)` or `#010203` as numbers; grey for anything else. */
export function parseRgb(text: string): Rgb {
  const [, red, green, blue] = /^rgba?\(\s*([\d.]+)[\s,]+([\d.]+)[\s,]+([\d.]+)/.exec(text) ?? [];
  if (red !== undefined) return [Number(red), Number(green), Number(blue)];
  const hex = /^#([\da-f]{6})$/i.exec(text)?.[1];
  if (hex) return [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as unknown as Rgb;
  return [128, 128, 128];
}

/** One of the shades of a colour: lighter or darker by at most a sixth. */
export function shadeOf([red, green, blue]: Rgb, shade: number): Rgb {
  const by = ((shade % SHADES) / (SHADES - 1) - 0.5) * 0.32;
  const mix = (part: number) => Math.round(by > 0 ? part + (255 - part) * by : part * (1 + by));
  return [mix(red), mix(green), mix(blue)];
}

/** How light a colour looks, 0 to 1. */
export function lightness([red, green, blue]: Rgb): number {
  const linear = (part: number) => (part / 255) ** 2.2;
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

const packed = ([red, green, blue]: Rgb) => red | (green << 8) | (blue << 16);

/** The colours of items under a theme and a search. */
export class Colours {
  private readonly shades: Uint32Array;
  private readonly isLight: boolean[];
  private readonly back: number;
  private readonly search: string;
  private readonly found = new WeakMap<object, Uint8Array>();
  private readonly tiles = new WeakMap<Tile, Uint32Array>();

  constructor(
    readonly theme: Theme,
    search = "",
  ) {
    this.search = search.toLowerCase();
    this.shades = new Uint32Array(CLASSES.length * SHADES);
    this.isLight = [];
    theme.classes.forEach((colour, nth) => {
      for (let shade = 0; shade < SHADES; shade++) {
        const shaded = shadeOf(colour, shade);
        this.shades[nth * SHADES + shade] = packed(shaded);
        // At this lightness black and white stand out alike.
        this.isLight[nth * SHADES + shade] = lightness(shaded) > 0.179;
      }
    });
    this.back = packed(theme.isDark ? [70, 72, 78] : [205, 207, 212]);
  }

  /** The colours of a tile's items, as `0x00BBGGRR`; looked up once, since every frame asks for them. */
  coloursOf(tile: Tile): Uint32Array {
    let known = this.tiles.get(tile);
    if (!known) {
      known = new Uint32Array(tile.length);
      for (let item = 0; item < tile.length; item++) known[item] = this.colour(tile, item);
      this.tiles.set(tile, known);
    }
    return known;
  }

  /** The colour of an item. */
  colour(tile: Tile, item: number): number {
    const name = tile.name[item] ?? 0;
    if (this.search && !this.isFound(tile, name)) return this.back;
    return this.shades[(tile.class[item] ?? 0) * SHADES + (tile.names.hash(name) % SHADES)] ?? 0;
  }

  /** What is written on an item: black or white, whichever stands out. */
  ink(tile: Tile, item: number): string {
    const name = tile.name[item] ?? 0;
    if (this.search && !this.isFound(tile, name)) return this.theme.faint;
    const shade = (tile.class[item] ?? 0) * SHADES + (tile.names.hash(name) % SHADES);
    return this.isLight[shade] ? "#000" : "#fff";
  }

  /** Whether a name has what is searched; each name of an answer is looked at once. */
  private isFound(tile: Tile, name: number): boolean {
    let known = this.found.get(tile.names);
    if (!known) {
      known = new Uint8Array(tile.names.length);
      this.found.set(tile.names, known);
    }
    if (known[name] === 0) known[name] = tile.names.text(name).toLowerCase().includes(this.search) ? 1 : 2;
    return known[name] === 1;
  }
}

/** The colour of a class for a slice of this name, for what stands beside the timeline. */
export function cssColour(theme: Theme, nth: number, name: string): string {
  const shade = hashOf(new TextEncoder().encode(name)) % SHADES;
  return `rgb(${shadeOf(theme.classes[nth] ?? [128, 128, 128], shade).join(", ")})`;
}
