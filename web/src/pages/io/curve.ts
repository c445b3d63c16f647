// The lines of the chart over time: of all calls, or of each group of them.

import type { Cell, Row, Unit } from "../../api/types";
import type { ClassName } from "../../classes";
import type { Series } from "../../components/charts/TimeSeries";

/** A quantity that the chart shows. */
export interface Shown {
  readonly unit: Unit;
  /** What the chart is called. */
  readonly label: string;
  /** Its lines when calls are not split. */
  readonly lines: readonly Series[];
  /** The columns that each group has a line of, with what is behind the group's name. */
  readonly ofGroup: readonly (readonly [column: string, words: string])[];
}

export const SHOWN = {
  bandwidth: {
    unit: "bytes_per_s",
    label: "Bandwidth of files over time",
    lines: [
      { name: "read_bytes_per_s", words: "read", colour: "input" },
      { name: "write_bytes_per_s", words: "written", colour: "copy", isDashed: true },
    ],
    ofGroup: [
      ["read_bytes_per_s", " read"],
      ["write_bytes_per_s", " written"],
    ],
  },
  time: {
    unit: "ns",
    label: "Time in calls on files, of each bucket",
    lines: [
      { name: "busy_ns", words: "in any call", colour: "label" },
      { name: "read_ns", words: "reading", colour: "input" },
      { name: "write_ns", words: "writing", colour: "copy", isDashed: true },
      { name: "exposed_ns", words: "while no device works", colour: "synchronization", isDashed: true },
    ],
    ofGroup: [["busy_ns", ""]],
  },
  calls: {
    unit: "count",
    label: "Calls on files in a second",
    lines: [{ name: "calls_per_s", words: "calls", colour: "label" }],
    ofGroup: [["calls_per_s", ""]],
  },
} as const satisfies Readonly<Record<string, Shown>>;

const COLOURS: readonly ClassName[] = ["input", "copy", "label", "synchronization", "compute", "communication"];

/** Rows with a column for each line of a group, `GROUP COLUMN`, and these lines: those that say more than 0. */
export function byGroup(results: readonly Row[], group: string, { ofGroup }: Shown): { rows: Row[]; lines: Series[] } {
  const groups = [...new Set(results.map((row) => String(row[group])))];
  const byTime = new Map<string, Record<string, Cell>>();
  const isShown = new Set<string>();
  for (const row of results) {
    const { start_ns = null, span_ns = null } = row;
    const joined = byTime.get(String(start_ns)) ?? { start_ns, span_ns };
    byTime.set(String(start_ns), joined);
    for (const [column] of ofGroup) {
      const cell = row[column] ?? null;
      const name = `${row[group]} ${column}`;
      joined[name] = cell;
      if (Number(cell) > 0) isShown.add(name);
    }
  }
  const lines = groups.flatMap((name, at) =>
    ofGroup.map(([column, words], second) => ({
      name: `${name} ${column}`,
      words: `${name.replaceAll("_", " ")}${words}`,
      colour: COLOURS[at % COLOURS.length] ?? "label",
      isDashed: second > 0,
    })),
  );
  return { rows: [...byTime.values()], lines: lines.filter(({ name }) => isShown.has(name)) };
}
