// How long pages of a job of many ranks take: `stepscope view` on a folder of traces, and its pages in a headless Chromium
// that has nothing of them yet.
//
//   cargo xtask bench ui-ranks      makes the traces and what else this needs, and runs it
//   node bench/ranks.mjs FOLDER [--pages overview,distributed,timeline] [--shot FOLDER]
//
// STEPSCOPE and CHROMIUM name the command and the browser.

import { join } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { frames } from "./frames.mjs";
import { count, megabytes, ms, quantile, seconds, table } from "./numbers.mjs";
import { Client, cpuOf, memoryOf, serve } from "./served.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { pages: { type: "string", default: "overview,distributed,timeline" }, shot: { type: "string" } },
});
const [folder] = positionals;
if (!folder) throw new Error("which job? node bench/ranks.mjs FOLDER");
const COMMAND = process.env.STEPSCOPE ?? new URL("../../target/release/stepscope", import.meta.url).pathname;
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const GOALS = { distributed: "first paint < 2 s" };
/** Nothing more is on its way when nothing was for so long: an answer may make a page ask for more. */
const QUIET_MS = 1000;
const LIMIT_MS = 300_000;
/** Moves and zooms on the timeline. */
const MOVES = 100;

/** Opens a page in a browser of its own: when it first painted, first showed an answer, and showed all. */
async function shown(url, name, shot) {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const page = await browser.newPage({ viewport: { width: 1500, height: 900 } });
    page.setDefaultTimeout(LIMIT_MS);
    const failures = [];
    page.on("pageerror", (error) => failures.push(String(error)));
    page.on(
      "response",
      (response) => response.status() >= 400 && failures.push(`${response.status()} ${response.url()}`),
    );
    // Told by the page itself, since asking it takes time.
    await page.addInitScript((quiet_ms) => {
      let all_ms;
      const look = () => {
        const now = performance.now();
        const isThere = document.querySelector("main :is(table td, svg, canvas, .verdict)") !== null;
        if (isThere) globalThis.answer_ms ??= now;
        if (!isThere || document.querySelector(".notice.loading, [aria-busy=true]")) all_ms = undefined;
        else all_ms ??= now;
        if (all_ms !== undefined && now - all_ms > quiet_ms) globalThis.all_ms = all_ms;
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    }, QUIET_MS);
    await page.goto(`${url}#${name}`);
    await page.waitForFunction(() => globalThis.all_ms !== undefined);
    const times = await page.evaluate(() => ({
      paint_ms: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
      answer_ms: globalThis.answer_ms,
      all_ms: globalThis.all_ms,
    }));
    if (shot) await page.screenshot({ path: join(shot, `${name}.png`), fullPage: true });
    return { ...times, failures };
  } finally {
    await browser.close();
  }
}

const server = await serve(COMMAND, [folder]);
const rows = [["page", "first paint", "first answer shown", "all shown", "CPU of the server", "goal"]];
const failures = [];
try {
  const client = new Client(server.url);
  const run = await client.ready("runs/0");
  const open_ms = performance.now() - server.begin;
  // It is laid out meanwhile; the pages are not to wait for it.
  await client.ready("runs/0/timeline");
  client.close();
  console.log(`${count(run.run.ranks.length)} ranks, ${count(Number(run.counts.slices))} slices`);
  console.log(`read after ${seconds(open_ms)}; timeline after ${seconds(performance.now() - server.begin)}\n`);
  for (const name of values.pages.split(",")) {
    for (const which of ["", ", again"]) {
      const cpu = cpuOf(server.pid);
      const page = await shown(server.url, name, values.shot);
      const times = [ms(page.paint_ms), seconds(page.answer_ms), seconds(page.all_ms)];
      rows.push([name + which, ...times, seconds(cpuOf(server.pid) - cpu), GOALS[name] ?? ""]);
      failures.push(...page.failures);
    }
  }
  console.log(table(rows));
  const moved = await frames(server.url, { executablePath, moves: MOVES });
  const p = (list) => `${ms(quantile(list, 0.5))}, p95 ${ms(quantile(list, 0.95))}`;
  console.log(`\ntimeline, ${MOVES} moves and zooms: ${moved.drawn.length} frames, drawing p50 ${p(moved.drawn)}`);
  console.log(`from frame to frame p50 ${p(moved.between)}; goal of drawing: p95 < 16 ms`);
  const memory = memoryOf(server.pid);
  console.log(`\nmemory of the server ${megabytes(memory?.resident)}, at its peak ${megabytes(memory?.peak)}`);
} finally {
  await server.stop();
}
for (const failure of failures) console.error(failure);
process.exitCode = failures.length > 0 ? 1 : 0;
