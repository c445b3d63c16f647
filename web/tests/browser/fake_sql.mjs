#!/usr/bin/env node
// Stands for stepscope-sql in the tests of the page: it answers a few queries, and says in files beside the input what runs.

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const words = process.argv.slice(2);
const after = (name) => (words.includes(name) ? words[words.indexOf(name) + 1] : undefined);
const folder = dirname((words.find((word) => word.startsWith("--input=")) ?? "").replace("--input=", ""));
const say = (value) => process.stdout.write(JSON.stringify(value));

const COLUMNS = [
  { name: "slice", type: "int", unit: "id", doc: "Its number." },
  { name: "name", type: "text", unit: "text", doc: "What it is called." },
  { name: "start_ns", type: "int", unit: "ns", doc: "When it begins, from the start of the trace." },
  { name: "dur_ns", type: "int", unit: "ns", doc: "How long it takes." },
  { name: "shapes", type: "list", unit: null, doc: "The shapes of its inputs, as `[2, 3]`." },
];
const SCHEMA = {
  tables: [
    { name: "slice", row: "A named event with a duration.", columns: COLUMNS },
    { name: "kernel", row: "What a device does.", columns: COLUMNS.filter(({ name }) => name !== "shapes") },
  ],
  functions: [
    { name: "stddev", call: "stddev(x)", doc: "How far values are spread." },
    { name: "operators", call: "operators()", doc: "The analysis `operators` as a table." },
  ],
  examples: [
    {
      title: "The names that take most time",
      sql: "SELECT name, sum(dur_ns) AS total_ns,\n  count(*) AS slices, max(bytes) AS bytes\nFROM slice GROUP BY name",
    },
    { title: "Durations over time", sql: "SELECT start_ns, dur_ns FROM slice" },
  ],
};

/** The rows that a query gives, and their columns. */
function answerOf(sql) {
  if (sql.includes("GROUP BY name")) {
    const columns = [
      { name: "name", type: "text", unit: "text", doc: "What it is called." },
      { name: "total_ns", type: "int", unit: "ns", doc: "How long all of them take." },
      { name: "slices", type: "int", unit: null, doc: null },
      { name: "bytes", type: "int", unit: "bytes", doc: null },
    ];
    const rows = [
      ["aten::mm", 4_860_000_000, 1020, 1 << 20],
      ["host_sync <b>", 2_460_000, 510, null],
      ["aten::add", 861_000_000, 12_000, 1536],
    ];
    return { columns, rows };
  }
  if (sql.includes("start_ns, dur_ns")) {
    const rows = Array.from({ length: 2500 }, (_, at) => [at * 1e6, 1000 + ((at * 7919) % 5000)]);
    return { columns: [COLUMNS[2], COLUMNS[3]], rows };
  }
  return {
    columns: [COLUMNS[4], { name: "seen", type: "flag", unit: null, doc: null }],
    rows: [
      [[[2, 3], []], true],
      [null, false],
    ],
  };
}

/** An answer as it is printed: some rows to a line. */
function* pagesOf({ columns, rows }) {
  const size = Number(after("--pages"));
  for (let at = 0; at === 0 || at < rows.length; at += size)
    yield { columns, rows: rows.slice(at, at + size), is_complete: at + size >= rows.length };
}

const sql = readFileSync(0, "utf8");
if (words.includes("--schema")) say(SCHEMA);
else if (sql.includes("nme")) {
  const lines = sql.split("\n");
  const line = lines.findIndex((text) => text.includes("nme"));
  const where = `line ${line + 1}, column ${(lines[line] ?? "").indexOf("nme") + 1}`;
  say({ error: { what: "there is no column `nme`", where, hint: "did you mean `name`?" } });
  process.exitCode = 1;
} else if (sql.includes("pg_sleep")) {
  writeFileSync(join(folder, "pid.part"), String(process.pid));
  renameSync(join(folder, "pid.part"), join(folder, "pid"));
  setInterval(() => {}, 1000);
} else if (words.includes("--csv")) {
  const { columns, rows } = answerOf(sql);
  process.stdout.write(`${[columns.map(({ name }) => name), ...rows].map((row) => row.join()).join("\n")}\n`);
} else if (words.includes("--parquet")) writeFileSync(after("--parquet"), "PAR1");
else for (const page of pagesOf(answerOf(sql))) process.stdout.write(`${JSON.stringify(page)}\n`);
