// Many people who pan and zoom at once, each over connections of its own, as fast as answers come.

import { Person } from "./panning.mjs";
import { Client, cpuOf, memoryOf } from "./served.mjs";

/** Has `people` look around for a while. Every eighth move is a search or the sums of a window. */
export async function load({ url, pid }, { people, seconds, texts }) {
  const first = new Client(url);
  const run = await first.ready("runs/0/timeline");
  const before = memoryOf(pid);
  const cpu = cpuOf(pid);
  const until = performance.now() + seconds * 1000;
  const times = [];
  const failures = [];
  let bytes = 0;
  const look = async (seed) => {
    const client = new Client(url);
    const person = new Person(run, seed);
    const ask = async (path) => {
      try {
        const { status, body, ms } = await client.get(path);
        times.push(ms);
        bytes += body.length;
        if (status !== 200) failures.push(`${status} ${path}: ${body.subarray(0, 200)}`);
      } catch (error) {
        failures.push(`${error.message} ${path}`);
      }
    };
    for (let moves = seed; performance.now() < until; moves++) {
      person.move();
      for (const path of person.tiles()) await ask(path);
      if (moves % 16 === 0)
        await ask(`runs/0/search?limit=50&q=${encodeURIComponent(texts[(moves / 16) % texts.length])}`);
      if (moves % 16 === 8) {
        const end_ns = Math.ceil(person.start_ns + 1000 * person.ns_per_px);
        await ask(`runs/0/sums?start_ns=${Math.floor(person.start_ns)}&end_ns=${end_ns}&by=name&limit=200`);
      }
    }
    client.close();
  };
  await Promise.all(Array.from({ length: people }, (_, seed) => look(seed)));
  first.close();
  const cpu_ms = (cpuOf(pid) - cpu) / times.length;
  return { requests: times.length, times, cpu_ms, failures, bytes, before, after: memoryOf(pid) };
}
