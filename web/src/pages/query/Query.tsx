import { useEffect, useRef, useState } from "preact/hooks";
import { runPath } from "../../api/paths";
import type { QuerySchema } from "../../api/types";
import { Loading } from "../../components/Notice";
import { useAnswer } from "../../state/answer";
import { hrefWith, param, route, setParams, timeWindow } from "../../state/route";
import { about, runId } from "../../state/runs";
import type { Changes } from "../../state/url";
import { askedAt } from "./address";
import { Editor, insertName } from "./Editor";
import { ErrorPlace } from "./ErrorPlace";
import { ResultView } from "./ResultView";
import { useQuery } from "./run_query";
import { Schema } from "./Schema";
import "./query.css";

/** What was written last and not run: it is there again after a look at another page. */
let draft = "";

/** SQL over the tables of the run. */
export default function Query() {
  const asked = askedAt(route.value);
  const [text, setText] = useState(asked.sql || draft);
  const area = useRef<HTMLTextAreaElement>(null);
  const { state, again, more, cancel } = useQuery(runId.value, asked.sql, asked.limit);
  // Once for a run: while it is being recorded its tables stay of the same kind.
  const schema = useAnswer<QuerySchema>(about.value?.sql ? runPath(runId.value, "query/schema") : null, 0);
  const write = (next: string) => {
    draft = next;
    setText(next);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: what Back leads to is written where it can be changed
  useEffect(() => {
    if (asked.sql) write(asked.sql);
  }, [asked.sql]);
  const run = (sql: string, changes: Changes = {}) => {
    if (sql.trim() === "") return;
    if (sql === asked.sql) again();
    // Another query has an order of its own.
    else setParams({ sql, sort: null, ...changes });
  };
  const select = (from: number, to: number) => {
    // What was changed since is not what the error is about.
    if (text !== asked.sql) write(asked.sql);
    requestAnimationFrame(() => {
      area.current?.focus();
      area.current?.setSelectionRange(from, to);
    });
  };
  const isRunning = state.state === "running";
  return (
    <>
      <h1>Query</h1>
      <p class="dim">SQL over the tables of this run.</p>
      {(param("rank") !== undefined || param("step") !== undefined || timeWindow.value) && (
        <p class="notice">
          Queries are about the whole run: what is selected for other pages has no effect here.{" "}
          <a href={hrefWith({ rank: null, step: null, window: null })}>Clear it</a>
        </p>
      )}
      <div class="query-page">
        <div class="query-main">
          <Editor area={area} text={text} schema={schema.value} onText={write} onRun={() => run(text)} />
          <div class="toolbar">
            <button type="button" class="primary" disabled={text.trim() === ""} onClick={() => run(text)}>
              Run
            </button>
            <button type="button" disabled={!isRunning} onClick={cancel}>
              Cancel
            </button>
            <span class="dim">
              <kbd>Ctrl</kbd>+<kbd>Enter</kbd> runs it
            </span>
          </div>
          <section aria-label="Result" aria-busy={isRunning}>
            {state.state === "none" && <p class="dim">The result comes here.</p>}
            {isRunning && <Loading what="Running the query…" />}
            {state.state === "cancelled" && (
              <p class="notice" role="status">
                The query was cancelled.
              </p>
            )}
            {state.state === "failed" && <ErrorPlace error={state.error} sql={asked.sql} onGo={select} />}
            {state.state === "ready" && (
              <ResultView
                result={state.result}
                asked={asked}
                isMoreComing={state.isMoreComing === true}
                onMore={more}
              />
            )}
          </section>
        </div>
        <aside class="query-side" aria-label="What there is to ask about">
          <Schema
            schema={schema}
            onExample={(sql) => {
              write(sql);
              run(sql, { plot: null, x: null, y: null });
            }}
            onName={(name) => area.current && insertName(area.current, name)}
          />
        </aside>
      </div>
    </>
  );
}
