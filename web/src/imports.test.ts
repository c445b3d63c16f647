// Which file may import which: web/README.md. Types are imports, too.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";

const SRC = import.meta.dirname;

/** From the top down: each folder imports from those behind it. */
const LAYERS = ["shell", "pages", "components", "state", "canvas", "format", "api"];
/** Files beside the folders that import any of them; others there are imported by any. */
const TOP = ["main", "app"];
/** What knows all pages. */
const REGISTRY = "pages/registry.ts";

interface Import {
  readonly from: string;
  readonly to: string;
  readonly isPackage: boolean;
  readonly isType: boolean;
  /** Imported when it is needed. */
  readonly isLazy: boolean;
}

/** Imports of files, by their paths below `src`; packages have their names. */
const IMPORTS: readonly Import[] = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((path) => /\.tsx?$/.test(path) && !path.includes(".test."))
  .flatMap((from) => {
    const text = readFileSync(join(SRC, from), "utf8");
    const found = text.matchAll(/^(?:import|export)\s(type\s)?[^;]*?from "([^"]+)"|\bimport\("([^"]+)"\)/gm);
    return [...found].map(([, type, named, lazy]) => {
      const path = named ?? lazy ?? "";
      const isPackage = !path.startsWith(".");
      const to = isPackage ? path : relative(SRC, join(SRC, dirname(from), path));
      return { from, to, isPackage, isType: type !== undefined, isLazy: lazy !== undefined };
    });
  });

const bare = (path: string): string => path.replace(/\.tsx?$/, "");
const layerOf = (path: string): number => {
  const at = LAYERS.indexOf(path.split("/")[0] ?? "");
  return TOP.includes(bare(path)) ? -1 : at < 0 ? LAYERS.length : at;
};
const pageOf = (path: string): string | null => /^pages\/([^/]+)\//.exec(path)?.[1] ?? null;
const said = (all: readonly Import[]): string[] => all.map(({ from, to }) => `${from} imports ${to}`);

test("imports are found", () => {
  expect(IMPORTS.length).toBeGreaterThan(700);
  expect(said(IMPORTS)).toContain("components/Words.tsx imports components/vocabulary");
  expect(said(IMPORTS)).toContain("pages/registry.ts imports pages/timeline/Timeline");
});

test("imports lead downwards", () => {
  expect(said(IMPORTS.filter(({ from, to, isPackage }) => !isPackage && layerOf(to) < layerOf(from)))).toEqual([]);
});

test("no page imports from another", () => {
  const others = ({ from, to }: Import) => pageOf(to) !== null && pageOf(to) !== pageOf(from) && from !== REGISTRY;
  expect(said(IMPORTS.filter((each) => layerOf(each.from) > 0 && others(each)))).toEqual([]);
});

test("the canvas, formats and requests know no framework", () => {
  const isBelow = ({ from }: Import) => layerOf(from) >= LAYERS.indexOf("canvas");
  expect(said(IMPORTS.filter((each) => isBelow(each) && each.isPackage))).toEqual([]);
});

test("no file imports itself by way of others", () => {
  const next = new Map<string, string[]>();
  for (const { from, to, isType, isLazy } of IMPORTS) {
    if (!isType && !isLazy) next.set(bare(from), [...(next.get(bare(from)) ?? []), bare(to)]);
  }
  const done = new Set<string>();
  const circles: string[] = [];
  const walk = (path: string, above: readonly string[]) => {
    if (above.includes(path)) circles.push([...above.slice(above.indexOf(path)), path].join(" > "));
    if (done.has(path) || above.includes(path)) return;
    for (const to of next.get(path) ?? []) walk(to, [...above, path]);
    done.add(path);
  };
  for (const path of next.keys()) walk(path, []);
  expect(circles).toEqual([]);
});
