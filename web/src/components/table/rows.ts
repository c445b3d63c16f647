// The rows of a result that are near what is on the screen; the server has the others.

import { useEffect, useMemo, useReducer } from "preact/hooks";
import { ask, bodyOf } from "../../api/client";
import { type Query, withQuery } from "../../api/paths";
import type { Envelope, ErrorBody, Row } from "../../api/types";

/** Rows of one request. */
export const PAGE_ROWS = 200;
/** Pages that are kept: what is scrolled far away from is asked for again. */
const KEPT_PAGES = 50;

/** The rows of one result, loaded page by page. */
export class RowStore {
  readonly #pages = new Map<number, readonly Row[]>();
  readonly #asked = new Map<number, AbortController>();
  /** Everything of the answer but its rows; null until the first page is here. */
  envelope: Envelope | null = null;
  /** The rows of the first answer, from which columns have their widths. */
  first: readonly Row[] = [];
  error: ErrorBody | null = null;

  constructor(
    readonly path: string,
    readonly query: Query,
    readonly onChange: () => void,
  ) {}

  /** A row, when it is here. */
  row(index: number): Row | undefined {
    return this.#pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
  }

  /** Asks for the pages of rows `first` to `last`, and gives up those that nobody wants any more. */
  want(first: number, last: number): void {
    const [from, to] = [Math.floor(first / PAGE_ROWS), Math.floor(Math.max(first, last) / PAGE_ROWS)];
    for (const [page, abort] of this.#asked) {
      if ((page < from || page > to) && this.envelope) {
        abort.abort();
        this.#asked.delete(page);
      }
    }
    for (let page = from; page <= to; page++) {
      if (!this.#pages.has(page) && !this.#asked.has(page)) void this.#load(page);
    }
  }

  /** Asks again after an error: what did not fit into memory then may fit now. */
  retry(): void {
    this.error = null;
    this.want(0, 0);
    this.onChange();
  }

  /** Gives up everything that is under way. */
  close(): void {
    for (const abort of this.#asked.values()) abort.abort();
    this.#asked.clear();
  }

  async #load(page: number): Promise<void> {
    const abort = new AbortController();
    this.#asked.set(page, abort);
    const part: Query = [
      ["offset", page * PAGE_ROWS],
      ["limit", PAGE_ROWS],
    ];
    try {
      const answer = await ask<Envelope>(withQuery(this.path, [...this.query, ...part]), abort.signal);
      if (this.envelope === null) this.first = answer.results;
      this.envelope = answer;
      this.#pages.set(page, answer.results);
      const farthest = [...this.#pages.keys()].sort((a, b) => Math.abs(b - page) - Math.abs(a - page))[0];
      if (this.#pages.size > KEPT_PAGES && farthest !== undefined) this.#pages.delete(farthest);
    } catch (error) {
      if (abort.signal.aborted) return;
      this.error = bodyOf(error);
    }
    this.#asked.delete(page);
    this.onChange();
  }
}

/** The rows of the result at `path`; they are asked for anew when it, the query or the run's version changes. */
export function useRows(path: string, query: Query, version: number | string): RowStore {
  const [, changed] = useReducer((count: number) => count + 1, 0);
  const key = `${version} ${withQuery(path, query)}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key has everything that the store is made of
  const store = useMemo(() => new RowStore(path, query, () => changed(undefined)), [key]);
  useEffect(() => {
    store.want(0, 0);
    return () => store.close();
  }, [store]);
  return store;
}
