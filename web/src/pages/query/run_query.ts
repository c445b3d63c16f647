// A query under way: it is asked for when the address names it, and aborted when it names another or the person says so.

import { useEffect, useRef, useState } from "preact/hooks";
import { ask, bodyOf } from "../../api/client";
import { runPath, withQuery } from "../../api/paths";
import type { ErrorBody, QueryAnswer } from "../../api/types";
import { Kept } from "../../state/kept";
import { detail } from "../../state/runs";
import { type AnswerTable, tableOf, withMore } from "./answer_table";

/** What was answered. */
export interface Result {
  readonly table: AnswerTable;
  readonly isComplete: boolean;
  /** The number by which to ask for the next rows. */
  readonly rest?: number | undefined;
  /** Why there are no more of them, although the result is not complete. */
  readonly why?: ErrorBody;
}

export type QueryState =
  | { readonly state: "none" }
  | { readonly state: "running" }
  | { readonly state: "cancelled" }
  | { readonly state: "ready"; readonly result: Result; readonly isMoreComing?: boolean }
  | { readonly state: "failed"; readonly error: ErrorBody };

/** Answers for Back and Forward. */
const kept = new Kept<Result>(8);

/** What an answer is kept as: a run that is being recorded becomes another one, but a query is not asked again by itself. */
const knownAs = (run: number, sql: string, limit: number): string =>
  JSON.stringify([run, detail.peek()?.version, sql, limit]);

/** The query that the address names, and how to run it again and to cancel it. */
export function useQuery(run: number, sql: string, limit: number) {
  const [shown, setShown] = useState<{ key: string; state: QueryState }>({ key: "", state: { state: "none" } });
  const [turn, setTurn] = useState(0);
  const abort = useRef<AbortController | null>(null);
  const last = useRef(turn);
  const key = JSON.stringify([run, sql, limit, turn]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the key has everything that is asked
  useEffect(() => {
    const isAgain = last.current !== turn;
    last.current = turn;
    if (sql.trim() === "") return;
    const known = knownAs(run, sql, limit);
    const before = isAgain ? undefined : kept.get(known);
    const show = (state: QueryState) => setShown({ key, state });
    if (before) return show({ state: "ready", result: before });
    const own = new AbortController();
    abort.current = own;
    const path = withQuery(runPath(run, "query"), [
      ["sql", sql],
      ["limit", limit],
    ]);
    ask<QueryAnswer>(path, own.signal).then(
      (answer) => {
        if (own.signal.aborted) return;
        const result = { table: tableOf(answer), isComplete: answer.is_complete, rest: answer.rest };
        kept.set(known, result);
        show({ state: "ready", result });
      },
      (error: unknown) => {
        if (!own.signal.aborted) show({ state: "failed", error: bodyOf(error) });
      },
    );
    return () => own.abort();
  }, [key]);

  const isShown = shown.key === key;
  const state: QueryState = sql.trim() === "" ? { state: "none" } : isShown ? shown.state : { state: "running" };
  const more = () => {
    if (state.state !== "ready" || state.isMoreComing || state.result.rest === undefined) return;
    const { result } = state;
    const known = knownAs(run, sql, limit);
    const own = new AbortController();
    abort.current = own;
    setShown({ key, state: { state: "ready", result, isMoreComing: true } });
    const show = (next: Result) => {
      if (own.signal.aborted) return;
      kept.set(known, next);
      setShown((now) => (now.key === key ? { key, state: { state: "ready", result: next } } : now));
    };
    ask<QueryAnswer>(withQuery(runPath(run, "query/rows"), [["rest", result.rest]]), own.signal).then(
      (answer) => show({ table: withMore(result.table, answer), isComplete: answer.is_complete, rest: answer.rest }),
      (error: unknown) => show({ table: result.table, isComplete: false, why: bodyOf(error) }),
    );
  };
  return {
    state,
    more,
    again: () => setTurn(turn + 1),
    cancel: () => {
      abort.current?.abort();
      setShown({ key, state: { state: "cancelled" } });
    },
  };
}
