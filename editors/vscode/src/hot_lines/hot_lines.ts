// Lines of source by what they cost, from the JSON of `stepscope analyze source_lines`.

import { Trouble } from "../trouble";

/** One line, with all that is called from it or through it. */
export interface HotLine {
  /** As the run names it. */
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly function: string;
  /** Of the time of all operators, or of all that devices did for them: between 0 and 1. */
  readonly share: number;
  readonly totalNs: number;
  readonly selfNs: number;
  /** Operators that are called from the line itself. */
  readonly count: number;
}

/** The lines of a run. */
export interface HotLines {
  /** Whether times are of devices; else of the host. */
  readonly isDevice: boolean;
  /** Of all ranks; 0 where it is not known. */
  readonly steps: number;
  /** The most expensive first; one for each line. */
  readonly lines: readonly HotLine[];
}

type Row = Readonly<Record<string, unknown>>;

/** The lines of a result, and the steps of a run if there is a result of these. */
export function hotLinesOf(sourceLines: string, stepBreakdown: string | null = null): HotLines {
  const rows = rowsOf(sourceLines, "source_lines");
  const isDevice = rows.some((row) => numberOf(row.device_total_ns) > 0);
  const [total, self] = isDevice
    ? (["device_total_ns", "device_self_ns"] as const)
    : (["host_total_ns", "host_self_ns"] as const);
  // Self times add up to the time of all operators; total times count it once for each line of a stack.
  const allNs = rows.reduce((sum, row) => sum + numberOf(row[self]), 0);
  const lines = rows.flatMap((row) => {
    if (typeof row.file !== "string" || typeof row.line !== "number" || row.line < 1) return [];
    const totalNs = numberOf(row[total]);
    const of = typeof row.function === "string" ? row.function : "";
    const share = allNs > 0 ? totalNs / allNs : 0;
    const [selfNs, count] = [numberOf(row[self]), numberOf(row.count)];
    return [{ file: row.file, line: row.line, function: of, share, totalNs, selfNs, count }];
  });
  const steps = stepBreakdown === null ? 0 : rowsOf(stepBreakdown, "step_breakdown").filter(isStep).length;
  return { isDevice, steps, lines: oneForEachLine(lines) };
}

/** The lines with at least this share. */
export const atLeast = (hot: HotLines, share: number): HotLines => ({
  ...hot,
  lines: hot.lines.filter((line) => line.share >= share && line.totalNs > 0),
});

/** Functions that share a line may be in each other: the one with the most is taken, and none are added up. */
function oneForEachLine(lines: readonly HotLine[]): HotLine[] {
  const most = new Map<string, HotLine>();
  for (const line of [...lines].sort((a, b) => b.totalNs - a.totalNs)) {
    const place = `${line.line} ${line.file}`;
    if (!most.has(place)) most.set(place, line);
  }
  return [...most.values()];
}

function rowsOf(text: string, analysis: string): Row[] {
  const hint = `Make it with \`stepscope analyze ${analysis} RUN --json\`.`;
  let envelope: unknown;
  try {
    envelope = JSON.parse(text);
  } catch {
    throw new Trouble(`the result of ${analysis} is no JSON`, hint);
  }
  if (!isRow(envelope) || envelope.analysis !== analysis || !Array.isArray(envelope.results)) {
    throw new Trouble(`this is no result of ${analysis}`, hint);
  }
  return envelope.results.filter(isRow);
}

/** Rows that are sums or means of others are no steps. */
const isStep = (row: Row): boolean => row.row === "one";
const isRow = (value: unknown): value is Row => typeof value === "object" && value !== null;
const numberOf = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0);
