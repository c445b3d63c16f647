// How long one person waits for answers when nobody else asks: tiles, searches, sums of windows.

import { Person } from "./panning.mjs";
import { Client, cpuOf } from "./served.mjs";

/** Asks each of some paths; the times that the server says, and those that passed here. */
async function times(client, paths) {
  const found = { server: [], here: [], bytes: 0 };
  for (const path of paths) {
    const { status, body, ms, server_ms } = await client.get(path);
    if (status !== 200) throw new Error(`${status} ${path}: ${body.subarray(0, 200)}`);
    found.server.push(server_ms);
    found.here.push(ms);
    found.bytes += body.length;
  }
  return found;
}

/** Tiles of `moves` moves; searches for `texts`, five times each; sums of windows of several lengths. */
export async function answers({ url, pid }, { moves, texts }) {
  const client = new Client(url);
  const run = await client.ready("runs/0/timeline");
  const person = new Person(run, 1);
  const paths = [];
  for (let move = 0; move < moves; move++) {
    person.move();
    paths.push(...person.tiles());
  }
  const before = cpuOf(pid);
  const tiles = await times(client, paths);
  const tile_cpu_ms = (cpuOf(pid) - before) / paths.length;
  const searches = texts.map((text) => `runs/0/search?limit=50&q=${encodeURIComponent(text)}`);
  const search = await times(client, Array.from({ length: 5 }, () => searches).flat());
  const { start_ns, end_ns } = run.span;
  const sums = {};
  for (const [name, part] of [
    ["of everything", 1],
    ["of a tenth", 0.1],
    ["of a hundredth", 0.01],
  ]) {
    const length = (end_ns - start_ns) * part;
    const windows = Array.from({ length: 10 }, (_, nth) => {
      const from = Math.floor(start_ns + (end_ns - start_ns - length) * (nth / 10));
      return `runs/0/sums?start_ns=${from}&end_ns=${Math.ceil(from + length)}&by=name&limit=200`;
    });
    sums[name] = await times(client, windows);
  }
  client.close();
  return { tiles, tile_cpu_ms, search, sums };
}
