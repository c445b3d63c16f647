// In the browser: asks Perfetto's engine by its protocol, TraceProcessorRpc (protos/perfetto/trace_processor).

const APPEND = 1;
const FINALIZE = 2;
const QUERY = 3;

/** A field of a message: its number, its kind and what is in it. */
function field(number, value) {
  const varint = (value) => {
    const bytes = [];
    for (let rest = value; ; rest = Math.floor(rest / 128)) {
      bytes.push(rest >= 128 ? (rest % 128) | 128 : rest);
      if (rest < 128) return bytes;
    }
  };
  if (typeof value === "number") return Uint8Array.from([...varint(number * 8), ...varint(value)]);
  const head = [...varint(number * 8 + 2), ...varint(value.length)];
  const bytes = new Uint8Array(head.length + value.length);
  bytes.set(head);
  bytes.set(value, head.length);
  return bytes;
}

function joined(parts) {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The fields of a message: numbers and bytes, each number in the order of the message. */
function fields(bytes) {
  const found = new Map();
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    let value;
    if (tag % 8 === 0) value = varint();
    else if (tag % 8 === 1) at += 8;
    else if (tag % 8 === 5) at += 4;
    else {
      const length = varint();
      value = bytes.subarray(at, at + length);
      at += length;
    }
    const number = Math.floor(tag / 8);
    found.set(number, [...(found.get(number) ?? []), value]);
  }
  return found;
}

const textOf = (bytes) => new TextDecoder().decode(bytes);

/** The engine in its worker. It answers in the order in which it is asked. */
class Engine {
  waiting = [];
  left = new Uint8Array(0);
  sequence = 0;

  constructor() {
    const { port1, port2 } = new MessageChannel();
    this.worker = new Worker("engine_bundle.js");
    this.worker.onerror = (event) =>
      this.waiting.shift()?.reject(new Error(event.message.split("\n")[0].slice(0, 200)));
    this.port = port1;
    this.port.onmessage = ({ data }) => this.heard(data);
    this.worker.postMessage(port2, [port2]);
  }

  ask(method, ...rest) {
    const message = joined([field(1, this.sequence++), field(2, method), ...rest]);
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      this.port.postMessage(field(1, message));
    });
  }

  /** Answers come in pieces of any length: each is a field of a stream. */
  heard(data) {
    this.left = this.left.length > 0 ? joined([this.left, data]) : data;
    for (;;) {
      let length = 0;
      let at = 1;
      for (let factor = 1; ; factor *= 128) {
        if (at >= this.left.length) return;
        const byte = this.left[at++];
        length += (byte & 127) * factor;
        if (byte < 128) break;
      }
      if (this.left.length < at + length) return;
      this.answered(fields(this.left.slice(at, at + length)));
      this.left = this.left.slice(at + length);
    }
  }

  answered(message) {
    const failed = (text) => this.waiting.shift()?.reject(new Error(text));
    if (message.has(5)) return failed(textOf(message.get(5)[0]));
    const result = message.get(203)?.[0];
    if (result) {
      const query = fields(result);
      if (query.has(2)) return failed(textOf(query.get(2)[0]));
      this.rows = this.rows ?? [];
      let isLast = false;
      for (const batch of query.get(3) ?? []) {
        const cells = fields(batch);
        this.rows.push(cells);
        isLast = isLast || cells.get(6)?.[0] === 1;
      }
      if (!isLast) return undefined;
    }
    const appended = message.get(201)?.[0];
    const error = appended && fields(appended).get(2)?.[0];
    if (error) return failed(textOf(error));
    const rows = this.rows;
    this.rows = undefined;
    return this.waiting.shift()?.resolve(rows);
  }

  /** How long a query takes with all its rows, in ms; the whole numbers of all of them, in their order. */
  async query(sql) {
    const begin = performance.now();
    const batches = await this.ask(QUERY, field(103, field(1, new TextEncoder().encode(sql))));
    const ms = performance.now() - begin;
    return { ms, numbers: batches.flatMap((batch) => (batch.get(2) ?? []).flatMap(numbersOf)) };
  }

  /** Reads the page's trace; returns how long that takes, in ms. */
  async load() {
    const begin = performance.now();
    const reader = (await fetch("trace")).body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      await this.ask(APPEND, field(101, value));
    }
    await this.ask(FINALIZE);
    return performance.now() - begin;
  }
}

/** Packed varints. */
function numbersOf(packed) {
  const numbers = [];
  let value = 0;
  let factor = 1;
  for (const byte of packed) {
    value += (byte & 127) * factor;
    factor *= 128;
    if (byte < 128) {
      numbers.push(value);
      value = 0;
      factor = 1;
    }
  }
  return numbers;
}

const several = async (times, work) => {
  const all = [];
  for (let nth = 0; nth < times; nth++) all.push(await work(nth));
  return all;
};

/** Reads the trace and asks each of `queries` as often as `times` says: the ms of each, and its whole numbers. */
globalThis.answers = async ({ queries, times }) => {
  const engine = new Engine();
  const loaded_ms = await engine.load();
  const answers = [];
  for (const sql of queries) {
    const asked = await several(times, () => engine.query(sql));
    answers.push({ ms: asked.map(({ ms }) => ms), numbers: asked[0].numbers });
  }
  return { loaded_ms, answers };
};

/** Reads the trace and asks what the page asks; `text` is what is searched. All times in ms. */
globalThis.measure = async (text) => {
  const engine = new Engine();
  const loaded_ms = await engine.load();
  const first = (await engine.query("select count(*), min(ts), max(ts + dur) from slice")).numbers;
  const [slices, start, end] = first;
  const named = `select name, count(*), sum(dur) from slice where name glob '*${text}*' group by name`;
  const search_ms = (await several(5, () => engine.query(named))).map(({ ms }) => ms);
  const sums_ms = async (part) => {
    const length = Math.floor((end - start) * part);
    const of = (nth) => {
      const from = start + Math.floor((end - start - length) * (nth / 5));
      const lies = `ts < ${from + length} and ts + dur > ${from}`;
      return `select name, count(*), sum(min(ts + dur, ${from + length}) - max(ts, ${from})) total from slice where ${lies} group by name order by total desc limit 200`;
    };
    return (await several(5, (nth) => engine.query(of(nth)))).map(({ ms }) => ms);
  };
  const everything_ms = await sums_ms(1);
  const hundredth_ms = await sums_ms(0.01);
  // Its page keeps such a table for each track, made when the track is first seen, and asks it once a move.
  const track = (await engine.query("select track_id, count(*) n from slice group by 1 order by n desc limit 1"))
    .numbers[0];
  const mipmap = `create virtual table tiles using __intrinsic_slice_mipmap((select id, ts, dur, depth from slice where track_id = ${track} and dur != -1))`;
  const track_ms = (await engine.query(mipmap)).ms;
  const tile = (nth) => {
    const length = Math.floor((end - start) / 4 ** (nth % 8));
    const from = start + Math.floor(((end - start - length) * ((nth * 7) % 11)) / 11);
    const bin = 2 ** Math.max(Math.floor(Math.log2(length / 1500)), 0);
    return `select z.ts, z.dur, z.count, s.id, s.ts, s.dur, s.name, s.depth from tiles(${from}, ${from + length}, ${bin}) z cross join slice s using (id)`;
  };
  const tile_ms = (await several(64, (nth) => engine.query(tile(nth)))).map(({ ms }) => ms);
  return { loaded_ms, slices, search_ms, everything_ms, hundredth_ms, track_ms, tile_ms };
};
