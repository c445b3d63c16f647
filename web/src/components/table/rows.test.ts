import { afterEach, expect, test, vi } from "vitest";
import { PAGE_ROWS, RowStore } from "./rows";

function answer(address: string): Response {
  const params = new URL(address, "http://127.0.0.1/").searchParams;
  const [offset, limit] = [Number(params.get("offset")), Number(params.get("limit"))];
  const results = Array.from({ length: limit }, (_, at) => ({ index: offset + at }));
  return new Response(JSON.stringify({ results, page: { offset, rows: limit, matching: 10_000, total: 20_000 } }));
}

afterEach(() => vi.unstubAllGlobals());

test("only pages that are wanted are asked for, each once", async () => {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (address: string) => {
    asked.push(address);
    return answer(address);
  });
  let changes = 0;
  const store = new RowStore("api/runs/0/analyses/kernels", [["sort", "count"]], () => changes++);
  store.want(0, 10);
  store.want(0, 20);
  await vi.waitFor(() => expect(changes).toBe(1));
  expect(asked).toEqual([`api/runs/0/analyses/kernels?sort=count&offset=0&limit=${PAGE_ROWS}`]);
  store.want(3 * PAGE_ROWS - 1, 3 * PAGE_ROWS + 1);
  await vi.waitFor(() => expect(changes).toBe(3));
  expect([store.row(0), store.row(3 * PAGE_ROWS), store.row(5 * PAGE_ROWS)]).toEqual([
    { index: 0 },
    { index: 3 * PAGE_ROWS },
    undefined,
  ]);
  expect(asked.length).toBe(3);
});

test("what is scrolled past is given up", async () => {
  const signals: AbortSignal[] = [];
  vi.stubGlobal("fetch", (address: string, { signal }: { signal: AbortSignal }) => {
    signals.push(signal);
    if (signals.length === 1) return Promise.resolve(answer(address));
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  let changes = 0;
  const store = new RowStore("rows", [], () => changes++);
  store.want(0, 1);
  await vi.waitFor(() => expect(changes).toBe(1));
  store.want(2000, 2001);
  store.want(4000, 4001);
  expect(signals.map((signal) => signal.aborted)).toEqual([false, true, false]);
  store.close();
  expect(signals.map((signal) => signal.aborted)).toEqual([false, true, true]);
  expect([changes, store.error]).toEqual([1, null]);
});

test("rows far away are forgotten, so that memory stays small", async () => {
  vi.stubGlobal("fetch", async (address: string) => answer(address));
  let changes = 0;
  const store = new RowStore("rows", [], () => changes++);
  for (let page = 0; page < 60; page++) {
    store.want(page * PAGE_ROWS, page * PAGE_ROWS);
    await vi.waitFor(() => expect(changes).toBe(page + 1), { interval: 1 });
  }
  expect([store.row(0), store.row(59 * PAGE_ROWS)]).toEqual([undefined, { index: 59 * PAGE_ROWS }]);
});

test("what the server says is wrong is the table's error, until it is asked again", async () => {
  const error = { what: "no column `x`", where: "kernels", hint: "it has name, count" };
  vi.stubGlobal("fetch", async () => new Response(JSON.stringify({ error }), { status: 400 }));
  let changes = 0;
  const store = new RowStore("rows", [["sort", "x"]], () => changes++);
  store.want(0, 0);
  await vi.waitFor(() => expect(changes).toBe(1));
  expect(store.error).toEqual(error);
  vi.stubGlobal("fetch", async (address: string) => answer(address));
  store.retry();
  expect(store.error).toBe(null);
  await vi.waitFor(() => expect(store.row(0)).toEqual({ index: 0 }));
});
