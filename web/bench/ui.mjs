// What looking at a run costs: `stepscope view` on a large trace, its page in a headless Chromium, many people at once, and
// Perfetto's engine beside it on a smaller one.
//
//   cargo xtask bench ui            makes the traces and what else this needs, and runs it
//   node bench/ui.mjs TRACE [--small TRACE --perfetto FOLDER] [--people 20] [--seconds 60] [--moves 100] [--shot FILE.png]
//
// STEPSCOPE and CHROMIUM name the command and the browser.

import { parseArgs } from "node:util";
import { answers } from "./answers.mjs";
import { frames } from "./frames.mjs";
import { load } from "./load.mjs";
import { count, megabytes, ms, quantile, seconds, table } from "./numbers.mjs";
import { perfetto } from "./perfetto.mjs";
import { Client, cpuOf, memoryOf, serve } from "./served.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    small: { type: "string" },
    perfetto: { type: "string" },
    people: { type: "string", default: "20" },
    seconds: { type: "string", default: "60" },
    moves: { type: "string", default: "100" },
    shot: { type: "string" },
  },
});
const [large] = positionals;
if (!large) throw new Error("which trace? node bench/ui.mjs TRACE");
const COMMAND = process.env.STEPSCOPE ?? new URL("../../target/release/stepscope", import.meta.url).pathname;
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
/** Parts of names that kernels, operators, calls and modules have; the last is in nearly all. */
const TEXTS = ["gemm", "aten::", "cudaLaunch", "layer", "nccl", "no such name", "e"];
/** How long Perfetto may take to open a trace. */
const LIMIT_MS = 300_000;

/** Opens a trace, and what it takes until the timeline, and then the search, answer. */
async function opened(trace) {
  const server = await serve(COMMAND, [trace]);
  const client = new Client(server.url);
  const run = await client.ready("runs/0");
  await client.ready("runs/0/timeline");
  const open_ms = performance.now() - server.begin;
  await client.ready("runs/0/search?q=a");
  const search_ms = performance.now() - server.begin;
  client.close();
  const cpu_ms = cpuOf(server.pid);
  return { server, slices: Number(run.counts.slices), open_ms, search_ms, cpu_ms, memory: memoryOf(server.pid) };
}

const rows = [["", "p50", "p99 (frames: p95)", "goal"]];
const p = (list, share = 0.99) => [ms(quantile(list, 0.5)), ms(quantile(list, share))];
const say = (what) => console.error(`bench ui: ${what} …`);

say(`opening ${large}`);
const view = await opened(large);
const { server } = view;
try {
  rows.push([`open: until the timeline answers, ${count(view.slices)} slices`, seconds(view.open_ms), "", "–"]);
  rows.push(["open: until the search answers; CPU", seconds(view.search_ms), seconds(view.cpu_ms), "–"]);
  rows.push(["memory then; at its peak", megabytes(view.memory?.resident), megabytes(view.memory?.peak), "–"]);
  say("one person: tiles, searches, sums");
  const one = await answers(server, { moves: 1000, texts: TEXTS });
  rows.push([
    `tiles, server, ${count(one.tiles.here.length)} requests of up to 256`,
    ...p(one.tiles.server),
    "p99 < 10 ms",
  ]);
  rows.push([
    `tiles, client, ${count(Math.round(one.tiles.bytes / one.tiles.here.length / 1000))} kB packed on average`,
    ...p(one.tiles.here),
    "–",
  ]);
  rows.push(["tiles, CPU of the server on average, packing included", ms(one.tile_cpu_ms), "", "–"]);
  rows.push(["search, server", ...p(one.search.server), "< 30 ms"]);
  for (const [name, { server }] of Object.entries(one.sums))
    rows.push([`sums ${name}, server`, ...p(server), "< 150 ms"]);
  say(`the page, ${values.moves} moves and zooms`);
  const page = await frames(server.url, { executablePath, moves: Number(values.moves), shot: values.shot });
  rows.push(["page: first paint", ms(page.paint_ms), "", "< 1 s"]);
  rows.push(["page: timeline drawn, nothing on its way", ms(page.drawn_ms), "", "< 1 s"]);
  rows.push([`page: ${page.drawn.length} frames, drawing`, ...p(page.drawn, 0.95), "p95 < 8 ms"]);
  rows.push(["page: frames, all of their script, CPU", ...p(page.cpu, 0.95), "–"]);
  rows.push(["page: from frame to frame", ...p(page.between, 0.95), "–"]);
  rows.push(["page: memory of its script", megabytes(page.heap_bytes), "", "–"]);
  say(`${values.people} people for ${values.seconds} s`);
  const many = await load(server, { people: Number(values.people), seconds: Number(values.seconds), texts: TEXTS });
  const rate = Math.round(many.requests / Number(values.seconds));
  rows.push([
    `${values.people} people: ${count(many.requests)} answers, ${count(rate)} a second, client`,
    ...p(many.times),
    "–",
  ]);
  rows.push([`${values.people} people: CPU of the server an answer`, ms(many.cpu_ms), "", "–"]);
  rows.push([`${values.people} people: failures`, count(many.failures.length), "", "0"]);
  rows.push(["memory before; after", megabytes(many.before?.resident), megabytes(many.after?.resident), "bounded"]);
  for (const failure of many.failures.slice(0, 5)) console.error(failure);
} finally {
  await server.stop();
}
console.log(table(rows));

if (values.small) {
  const { server, ...small } = await opened(values.small);
  const ours = await answers(server, { moves: 1000, texts: ["gemm"] }).finally(() => server.stop());
  const middle = (list) => ms(quantile(list, 0.5));
  const beside = [
    [`the same on ${count(small.slices)} slices, p50`, "Stepscope", "Perfetto's engine in Chromium"],
    ["open", `${seconds(small.open_ms)}, CPU ${seconds(small.cpu_ms)}`, ""],
    ["memory, peak", megabytes(small.memory?.peak), ""],
    ["search", middle(ours.search.server), ""],
    ["sums of everything", middle(ours.sums["of everything"].server), ""],
    ["sums of a hundredth", middle(ours.sums["of a hundredth"].server), ""],
    ["tiles: 40 rows; one track", middle(ours.tiles.server), ""],
  ];
  if (values.perfetto) {
    say("Perfetto");
    try {
      const asked = await perfetto(values.small, {
        dist: values.perfetto,
        executablePath,
        call: "measure",
        asked: "gemm",
        limit_ms: LIMIT_MS,
      });
      const theirs = [
        seconds(asked.loaded_ms),
        `${megabytes(asked.peak_added)}, ${Math.round(asked.peak_added / asked.slices)} bytes a slice`,
        middle(asked.search_ms),
        middle(asked.everything_ms),
        middle(asked.hundredth_ms),
        `${middle(asked.tile_ms)}, after ${ms(asked.track_ms)} when it is first seen`,
      ];
      theirs.forEach((text, nth) => {
        beside[nth + 1][2] = text;
      });
      const needed = (asked.peak_added / asked.slices) * view.slices;
      beside.push([
        `memory for ${count(view.slices)} slices`,
        megabytes(view.memory?.peak),
        `${megabytes(needed)} at this rate: WebAssembly has 16 GB at most`,
      ]);
    } catch (error) {
      beside[1][2] = `failed: ${error.message}`;
    }
  }
  console.log(`\n${table(beside)}`);
}
