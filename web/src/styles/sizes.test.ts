// Sizes are those of sizes.css, and README.md has each.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const SRC = join(import.meta.dirname, "..");
const SHEETS = readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".css"));
const textOf = (path: string): string => readFileSync(join(SRC, path), "utf8");
const SIZES = textOf("styles/sizes.css");
const NAMES = [...SIZES.matchAll(/^ {2}(--[\w-]+):/gm)].map(([, name]) => name ?? "");

/** Declarations of all other sheets, each with its file. */
const declarations = SHEETS.filter((path) => path !== "styles/sizes.css").flatMap((path) =>
  [...textOf(path).matchAll(/^\s+([\w-]+):\s*([^;{}]+);/gm)].map(([, property = "", value = ""]) => ({
    property,
    value,
    line: `${path}: ${property}: ${value}`,
  })),
);
const of = (properties: RegExp, isOdd: (value: string) => boolean): string[] =>
  declarations.filter(({ property, value }) => properties.test(property) && isOdd(value)).map(({ line }) => line);

test("sheets and sizes are found", () => {
  expect(SHEETS.length).toBeGreaterThan(8);
  expect(declarations.length).toBeGreaterThan(500);
  expect(NAMES.length).toBeGreaterThan(15);
});

test("distances are those of the scale; longer ones than it has are places, not distances", () => {
  const odd = (value: string) =>
    !value.includes("calc(") && [...value.matchAll(/(?<![-\d.])([\d.]+)rem/g)].some(([, rem]) => Number(rem) <= 2);
  expect(of(/^(row-|column-)?gap$|^(margin|padding)/, odd)).toEqual([]);
});

test("texts and corners have sizes that are named", () => {
  expect(of(/^font-size$/, (value) => !/^var\(--text-|^(inherit|1em)$/.test(value))).toEqual([]);
  expect(of(/^border-radius$/, (value) => !/^(var\(--round-|0|50%|inherit)/.test(value))).toEqual([]);
});

test("every size is used, and no other is", () => {
  const used = new Set(
    declarations.flatMap(({ value }) => [...value.matchAll(/--(?:text|space|round)-[\w-]+/g)].map(String)),
  );
  expect([...used].filter((name) => !NAMES.includes(name))).toEqual([]);
  expect(NAMES.filter((name) => !used.has(name))).toEqual([]);
});

test("the page on how pages look has every size", () => {
  const page = textOf("styles/README.md");
  // Of a scale it has the ends, and where parts of it are used.
  const isWritten = (name: string) => page.includes(`\`${name}\``) || /^--space-[2-9]$/.test(name);
  expect(NAMES.filter((name) => !isWritten(name))).toEqual([]);
});
