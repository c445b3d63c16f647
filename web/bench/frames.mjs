// How long the timeline takes to draw a frame: the built page in a headless Chromium, over rows that are made up here.
//
//   npm run build && node bench/frames.mjs [--rows 40] [--items 1000] [--width 1500] [--ratio 1] [--shot FILE.png]
//
// A frame's time is that of the script that draws it; what the browser does with the canvas afterwards stands below.
// On a machine that does other things too, read CPU time.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "40" },
    items: { type: "string", default: "1000" },
    width: { type: "string", default: "1500" },
    ratio: { type: "string", default: "1" },
    moves: { type: "string", default: "100" },
    shot: { type: "string" },
  },
});
const ROWS = Number(values.rows);
const ITEMS = Number(values.items);
const SPAN = { start_ns: 0, end_ns: 10_000_000_000 };
const DIST = new URL("../dist/", import.meta.url).pathname;

/** Numbers that look random and are the same each time. */
function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const NAMES = Array.from({ length: 300 }, (_, at) => `void at::native::kernel_number_${at}<float, 4>(float*, int)`);

/** A block full of items that do not overlap: slices of all lengths, and every third stands for several. */
function tiles(blocks, level, first, count) {
  const n = blocks * count * ITEMS;
  const start = new Float64Array(n);
  const dur = new Float64Array(n);
  const busy = new Float64Array(n);
  const slice = new Uint32Array(n);
  const counts = new Uint32Array(n);
  const name = new Uint32Array(n);
  const classes = new Uint8Array(n);
  const flags = new Uint8Array(n);
  const span = 512 * 2 ** level;
  let at = 0;
  for (let block = 0; block < blocks; block++) {
    for (let tile = first; tile < first + count; tile++) {
      const next = random(block * 7919 + tile * 31 + level);
      const room = span / ITEMS;
      for (let item = 0; item < ITEMS; item++, at++) {
        start[at] = tile * span + item * room + next() * room * 0.3;
        dur[at] = room * (0.1 + next() * 0.6);
        busy[at] = dur[at];
        slice[at] = at;
        name[at] = Math.floor(next() * NAMES.length);
        classes[at] = block % 11;
        const isSeveral = item % 3 === 0;
        counts[at] = isSeveral ? 7 : 1;
        flags[at] = isSeveral ? 2 : 0;
      }
    }
  }
  const texts = NAMES.map((text) => new TextEncoder().encode(text));
  const ends = new Uint32Array(NAMES.length + 1);
  texts.forEach((text, nth) => {
    ends[nth + 1] = ends[nth] + text.length;
  });
  const parts = [
    new Uint32Array([0x314c5453, blocks * count, n, NAMES.length]),
    new Uint32Array(blocks * count).fill(ITEMS),
    ...[start, dur, busy, slice, counts, name, classes, flags, ends],
    Buffer.concat(texts),
  ];
  const out = [];
  let length = 0;
  for (const part of parts) {
    const padding = (8 - (length % 8)) % 8;
    out.push(Buffer.alloc(padding), Buffer.from(part.buffer, part.byteOffset, part.byteLength));
    length += padding + part.byteLength;
  }
  return Buffer.concat(out);
}

const row = (id, kind = "slices") => ({ id, name: `row ${id}`, kind, depth: 0, slices: 1, unit: null, rank: 0, track: id });
const tracks = Array.from({ length: ROWS }, (_, id) => ({
  name: `Stream ${id}`,
  rank: 0,
  kind: "track",
  is_open: true,
  summary: null,
  groups: [],
  rows: [row(id)],
}));
const group = { name: "Rank 0", rank: 0, kind: "rank", is_open: true, summary: null, groups: tracks, rows: [] };
const has = Object.fromEntries(["devices", "memory", "shapes", "stacks", "modules", "python", "io", "collectives", "counters"].map((name) => [name, false]));
const JSON_ANSWERS = {
  "api/runs": [{ id: 0, name: "made up", path: "", state: "ready", progress: null, error: null, version: 1, is_live: false }],
  "api/analyses": [],
  "api/runs/0": {
    id: 0,
    version: 1,
    run: { name: "made up", ranks: [0], sources: [] },
    span: SPAN,
    start_unix_ns: null,
    ranks: [],
    steps: Array.from({ length: 20 }, (_, number) => ({ rank: 0, number, start_ns: number * 5e8, end_ns: (number + 1) * 5e8, source: "label", is_complete: true })),
    devices: [],
    facts: [],
    counts: { slices: 1, findings: 0 },
    has,
  },
  "api/runs/0/timeline": { span: SPAN, focus: SPAN, groups: [group] },
};
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

const server = createServer((request, response) => {
  const url = new URL(request.url, "http://127.0.0.1");
  const path = url.pathname.slice(1);
  const answer = JSON_ANSWERS[path];
  const number = (name) => Number(url.searchParams.get(name));
  if (answer) response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(answer));
  else if (path.endsWith("/tiles")) {
    const rows = url.searchParams.get("rows").split(",").length;
    response.writeHead(200).end(tiles(rows, number("level"), number("first"), number("count")));
  } else if (path.startsWith("api/")) response.writeHead(404).end("{}");
  else {
    const file = join(DIST, normalize(path || "index.html"));
    try {
      response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "text/plain" }).end(readFileSync(file));
    } catch {
      response.writeHead(404).end();
    }
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const viewport = { width: Number(values.width) + 455, height: 22 * ROWS + 520 };
const page = await browser.newPage({ viewport, deviceScaleFactor: Number(values.ratio) });
page.on("pageerror", (error) => console.error(error));
await page.goto(`http://127.0.0.1:${server.address().port}/#timeline`);
const canvas = page.locator(".timeline-canvas canvas");
await canvas.waitFor();
await page.waitForTimeout(1500);
const box = await canvas.boundingBox();
await page.mouse.move(box.x + box.width * 0.4, box.y + 200);

await browser.startTracing(page, { categories: ["devtools.timeline", "disabled-by-default-devtools.timeline"] });
await canvas.evaluate((element) => {
  element.frames_ms.length = 0;
});
// As many zooms as moves, in and out again, so that tiles of many levels are drawn and stretched.
const keys = ["w", "d", "w", "a", "s", "d", "s", "a"];
for (let move = 0; move < Number(values.moves); move++) {
  const key = keys[move % keys.length];
  await page.keyboard.down(key);
  await page.waitForTimeout(120);
  await page.keyboard.up(key);
}
const drawn = await canvas.evaluate((element) => [...element.frames_ms]);
const events = JSON.parse((await browser.stopTracing()).toString()).traceEvents;
if (values.shot) await page.screenshot({ path: values.shot });
await browser.close();
server.close();

const at = (list, share) => {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
};
const line = (name, list) =>
  `${name.padEnd(10)} ${String(list.length).padStart(5)}   p50 ${at(list, 0.5).toFixed(2)} ms   p95 ${at(list, 0.95).toFixed(2)} ms   max ${at(list, 1).toFixed(2)} ms`;
console.log(`${ROWS} rows, ${Math.round(box.width)} CSS px × ${values.ratio}, ${ITEMS} items a tile`);
// What a processor worked, however many others wanted it meanwhile.
const cpu_ms = (name) => events.filter((event) => event.name === name && event.tdur).map((event) => event.tdur / 1000);
console.log(line("wall", drawn));
console.log(line("CPU", cpu_ms("FireAnimationFrame").filter((ms) => ms > 0.3)));
for (const name of ["RasterTask", "Paint", "Commit", "Layerize", "UpdateLayoutTree"]) console.log(line(name, cpu_ms(name)));
