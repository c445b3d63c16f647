// How the page asks the server: relative addresses, the token in a header, errors as the server words them.

import { parseExact } from "./json";
import type { ErrorBody } from "./types";

const TOKEN_KEY = `stepscope-token:${globalThis.location?.pathname ?? ""}`;
/** The status of an answer about a run that is still being read; of what the run is, and of anything else. */
const LOADING = [202, 409];
/** The status of an answer to who has no token, or another server's. */
export const REFUSED = 401;
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
 * Takes the token out of the address bar, where it would be seen and copied. Once the server has taken it, it is kept for
 * every tab of this browser: what is kept belongs to this host and port, and no other server is ever sent it.
 */
export function takeToken(): void {
  const url = new URL(location.href);
  const given = url.searchParams.get("token");
  token = given ?? keptToken() ?? "";
  if (given === null) return;
  url.searchParams.delete("token");
  history.replaceState(history.state, "", url);
}

/** Keeps the token that is in `text`, an address or the token alone, and begins anew with it. */
export function giveToken(text: string): void {
  const given = tokenIn(text);
  if (given) keepToken(given);
  location.reload();
}

/** Calls `then` when another tab keeps another token. */
export function onOtherToken(then: () => void): void {
  addEventListener("storage", (event) => {
    if (event.key === TOKEN_KEY && event.newValue) then();
  });
}

/** The token in an address as the command printed it; a text without one is the token itself. */
export function tokenIn(text: string): string {
  const [, inAddress] = /[?&]token=([^&#\s]*)/.exec(text) ?? [];
  return inAddress === undefined ? text.trim() : (new URLSearchParams(`t=${inAddress}`).get("t") ?? "");
}

// A browser may keep nothing, as in a frame of another site: then the token lasts as long as the page.
function keptToken(): string | null {
  try {
    return localStorage.getItem(TOKEN_KEY);
  } catch {
    return null;
  }
}

function keepToken(kept: string): void {
  try {
    localStorage.setItem(TOKEN_KEY, kept);
  } catch {
    return;
  }
}

/** An address with the token in it: for downloads and server-sent events, which cannot send headers, and for links. */
export function withToken(address: string): string {
  const url = new URL(address, document.baseURI);
  if (token) url.searchParams.set("token", token);
  return url.href;
}

/** The answer to `path` as it came. Throws an `ApiError`, or what `fetch` throws when `signal` aborts it. */
export async function askRaw(path: string, signal?: AbortSignal): Promise<Response> {
  const used = token;
  let response: Response;
  try {
    response = await fetch(path, { signal, headers: used ? { Authorization: `Bearer ${used}` } : {} });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError({ what: "the server does not answer", hint: "is `stepscope view` still running?" }, 0);
  }
  if (response.status === REFUSED) {
    // The server was started anew, and another tab knows its token; or a link has an old one.
    const other = keptToken();
    if (other && other !== used) {
      token = other;
      return askRaw(path, signal);
    }
  } else if (used && response.ok && keptToken() !== used) keepToken(used);
  if (!response.ok) throw await errorOf(response, path);
  return response;
}

/** The answer to `path` as JSON. While the run is still being read it is asked for again, until `signal` says enough. */
export async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  for (;;) {
    try {
      const response = await askRaw(path, signal);
      if (!LOADING.includes(response.status)) return parseExact(await response.text()) as T;
    } catch (error) {
      if (!(error instanceof ApiError && LOADING.includes(error.status))) throw error;
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
  if (response.status === REFUSED) {
    const hint = "Open the full address that `stepscope view` printed.";
    return new ApiError({ what: "This tab has no access key.", hint }, REFUSED);
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
