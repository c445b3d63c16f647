// The editor that shows these pages in a frame, when the address names one: `?editor=ORIGIN&nonce=TEXT`. Such an editor is
// told which line to open, and nothing else; without one, no message leaves the page.

import { signal } from "@preact/signals";

/** Who is told: the frame around this one, if it is a page of this origin. */
export interface FramingEditor {
  readonly origin: string;
  /** By which the editor knows that the message comes from the page that it opened. */
  readonly nonce: string;
}

/** What an editor is told. */
export interface OpenMessage {
  readonly stepscope: 1;
  readonly kind: "open";
  readonly file: string;
  readonly line: number;
  readonly nonce: string;
}

/** A scheme and a host, without a path: `vscode-webview://id`, of which `URL` knows no origin. Never `*`, never `null`. */
const ORIGIN = /^[a-z][a-z0-9+.-]{0,30}:\/\/[A-Za-z0-9[\]:._-]{1,255}$/;
const NONCE = /^[A-Za-z0-9_-]{16,128}$/;
const NAMES = ["editor", "nonce"] as const;

/** The editor around this page; null when there is none. */
export const framingEditor = signal<FramingEditor | null>(null);

/** Takes what the address says of the editor out of it, so that no copied link has it. Only a page in a frame has one. */
export function takeFramingEditor(page: Window = window): void {
  const url = new URL(page.location.href);
  const named = framingEditorIn(url);
  framingEditor.value = page.parent === page ? null : named;
  if (!NAMES.some((name) => url.searchParams.has(name))) return;
  for (const name of NAMES) url.searchParams.delete(name);
  page.history.replaceState(page.history.state, "", url);
}

/** What the address says of an editor; null where it says nothing, or what is no origin or no nonce. */
export function framingEditorIn(url: URL): FramingEditor | null {
  const [origin, nonce] = NAMES.map((name) => url.searchParams.get(name) ?? "");
  return origin && nonce && ORIGIN.test(origin) && NONCE.test(nonce) ? { origin, nonce } : null;
}

/** Has the editor around this page open a line; does nothing when there is no such editor. */
export function openInFramingEditor(file: string, line: number, page: Window = window): void {
  const editor = framingEditor.peek();
  if (editor === null || page.parent === page) return;
  const message: OpenMessage = { stepscope: 1, kind: "open", file, line, nonce: editor.nonce };
  page.parent.postMessage(message, editor.origin);
}
