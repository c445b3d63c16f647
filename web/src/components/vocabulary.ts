// What pages call what programs name: analyses, columns, and the parts that time is divided into.

import { computed } from "@preact/signals";
import type { Column } from "../api/types";
import { PARTS } from "../classes";
import { analyses } from "../state/runs";

const SHORT: Readonly<Record<string, string>> = {
  cpu: "CPU",
  flops: "FLOPs",
  gpu: "GPU",
  io: "I/O",
  macs: "MACs",
  pid: "PID",
  sm: "SM",
};

const written = (words: readonly string[]): string => words.map((word) => SHORT[word] ?? word).join(" ");

/** The title of an analysis: `idle_causes` is *Idle causes*. */
export function analysisTitle(name: string): string {
  const words = written(name.split("_"));
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const columns = computed(
  () => new Set([...analyses.value.values()].flatMap(({ columns }) => columns.map(({ name }) => name))),
);

/** The words for a name that a text has as code; null for what a person types or reads in code. */
export function wordsOf(name: string): string | null {
  if (!name.includes("_")) return null;
  if (analyses.value.has(name)) return analysisTitle(name);
  if (Object.hasOwn(PARTS, name)) return PARTS[name]?.words ?? null;
  return columns.value.has(name) ? columnWords(name) : null;
}

/** What a column measures, where no head of a table stands above it: `device self` is a time. */
export const measureWords = ({ label, unit }: Pick<Column, "label" | "unit">): string =>
  unit === "ns" && /\b(total|self)$/.test(label) ? `${label} time` : label;

/** A column's name without its unit, which cells show. */
const columnWords = (name: string): string => written(name.replace(/_(ns|bytes|ratio)(?=_|$)/, "").split("_"));

/** A text in which code stands between backquotes, as one without them; `called` says what else is called otherwise. */
export const withoutCode = (text: string, called = (name: string) => name): string =>
  text
    .split("`")
    .map((part, at) => (at % 2 === 1 ? (wordsOf(part) ?? called(part)) : part))
    .join("");
