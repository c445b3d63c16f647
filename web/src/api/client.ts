// How the page asks the server: relative addresses, the token in a header, errors as the server words them.

import { parseExact } from "./json";
import type { ErrorBody } from "./types";

const TOKEN_KEY = `stepscope-token:${globalThis.location?.pathname ?? ""}`;
/** The status of an answer about a run that is still being read. */
const LOADING = 409;
const ASK_AGAIN_MS = 400;
let token = "";

/** What went wrong, where, and what to do about it. */
export class ApiError extends Error {
  constructor(
    readonly body: ErrorBody,
    readonly status: number,
  ) {
    super(body.what);
  }
}

/**
 * Takes the token out of the address bar, where it would be seen and copied, and keeps it for this tab, so that
 * reloading works.
 */
export function takeToken(): void {
  const url = new URL(location.href);
  const given = url.searchParams.get("token");
  if (given === null) {
    token = sessionStorage.getItem(TOKEN_KEY) ?? "";
    return;
  }
  token = given;
  sessionStorage.setItem(TOKEN_KEY, given);
  url.searchParams.delete("token");
  history.replaceState(history.state, "", url);
}

/** An address with the token in it: for downloads and server-sent events, which cannot send headers, and for links. */
export function withToken(address: string): string {
  const url = new URL(address, document.baseURI);
  if (token) url.searchParams.set("token", token);
  return url.href;
}

/** The answer to `path` as it came. Throws an `ApiError`, or what `fetch` throws when `signal` aborts it. */
export async function askRaw(path: string, signal?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { signal, headers: token ? { Authorization: `Bearer ${token}` } : {} });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError({ what: "the server does not answer", hint: "is `stepscope view` still running?" }, 0);
  }
  if (!response.ok) throw await errorOf(response, path);
  return response;
}

/** The answer to `path` as JSON. While the run is still being read it is asked for again, until `signal` says enough. */
export async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  for (;;) {
    try {
      const response = await askRaw(path, signal);
      return parseExact(await response.text()) as T;
    } catch (error) {
      if (!(error instanceof ApiError && error.status === LOADING)) throw error;
    }
    await pause(ASK_AGAIN_MS, signal);
  }
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

async function errorOf(response: Response, path: string): Promise<ApiError> {
  if (response.status === 401) {
    const hint = "open the whole address that `stepscope view` printed, with its token";
    return new ApiError({ what: "the server does not know this page", hint }, 401);
  }
  try {
    const answer = (await response.json()) as { error: ErrorBody };
    if (typeof answer.error.what === "string") return new ApiError(answer.error, response.status);
  } catch {
    // What is no JSON came from a proxy; its status has to do.
  }
  return new ApiError({ what: `the server answered ${response.status}`, where: path }, response.status);
}

/** What went wrong in the words of the page, whatever was thrown. */
export function bodyOf(error: unknown): ErrorBody {
  if (error instanceof ApiError) return error.body;
  return { what: error instanceof Error ? error.message : String(error) };
}
