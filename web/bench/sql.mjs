// Asks Perfetto's engine questions in SQL: what stands on the standard input, a list of queries as JSON.
//
//   node bench/sql.mjs TRACE FOLDER [TIMES] < queries.json
//
// FOLDER has the files of Perfetto's page. Prints how long the trace took to read, the ms of each query each time it was
// asked, and its whole numbers, as JSON.

import { readFileSync } from "node:fs";
import { perfetto } from "./perfetto.mjs";

const LIMIT_MS = 900_000;

const [trace, dist, times = "4"] = process.argv.slice(2);
const queries = JSON.parse(readFileSync(0, "utf8"));
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const asked = { queries, times: Number(times) };
console.log(
  JSON.stringify(await perfetto(trace, { dist, executablePath, call: "answers", asked, limit_ms: LIMIT_MS })),
);
