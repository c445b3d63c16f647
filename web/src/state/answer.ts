// An answer of the server in a component: asked for when it is shown, aborted when it is not.

import { useEffect, useState } from "preact/hooks";
import { ask, bodyOf } from "../api/client";
import type { ErrorBody } from "../api/types";
import { Kept } from "./kept";

/** What is known of an answer; while it loads, `value` may be the one before it. */
export type Answer<T> =
  | { readonly state: "loading"; readonly value: T | undefined }
  | { readonly state: "ready"; readonly value: T }
  | { readonly state: "failed"; readonly value: undefined; readonly error: ErrorBody };

const kept = new Kept<unknown>(64);

/**
 * The answer to `path`; nothing is asked while it is null. `version` is that of the run: with another one it is asked
 * again.
 */
export function useAnswer<T>(path: string | null, version: number | string): Answer<T> {
  const key = path === null ? null : `${version} ${path}`;
  const [shown, setShown] = useState<{ key: string | null; answer: Answer<T> }>({ key: null, answer: LOADING });

  useEffect(() => {
    if (key === null || path === null || kept.get(key) !== undefined) return;
    const abort = new AbortController();
    ask<T>(path, abort.signal).then(
      (value) => {
        kept.set(key, value);
        if (!abort.signal.aborted) setShown({ key, answer: { state: "ready", value } });
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        setShown({ key, answer: { state: "failed", value: undefined, error: bodyOf(error) } });
      },
    );
    return () => abort.abort();
  }, [key, path]);

  if (key === null) return LOADING;
  const known = kept.get(key) as T | undefined;
  if (known !== undefined) return { state: "ready", value: known };
  return shown.key === key ? shown.answer : { state: "loading", value: shown.answer.value };
}

const LOADING = { state: "loading", value: undefined } as const;
