// Addresses of a viewer: as the command prints it, as the editor reaches it, and as the frame opens it.

import { Trouble } from "../trouble";

/** The address in what `stepscope view` has printed so far; null while its line is not complete. */
export function printedAddress(output: string): string | null {
  return /^\s*(https?:\/\/\S+)\s*?\n/m.exec(output)?.[1] ?? null;
}

/** An address that a person typed, checked. */
export function givenAddress(text: string): string {
  const hint = "Give the full address that `stepscope view --allow-frame` printed, with its token.";
  let url: URL;
  try {
    url = new URL(text.trim());
  } catch {
    throw new Trouble("`stepscope.viewerAddress` is no address", hint, text.trim());
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new Trouble("`stepscope.viewerAddress` is no address of a web page", hint, text.trim());
  }
  if (!url.searchParams.get("token")) throw new Trouble("`stepscope.viewerAddress` has no token", hint, url.origin);
  return url.href;
}

/** The address without what only the page may know: what the editor is asked how to reach. */
export function bareAddress(address: string): string {
  const url = new URL(address);
  return `${url.origin}${url.pathname}`;
}

/** The same page of the viewer by the way in which the editor reaches it, such as a forwarded port. */
export function reachedBy(external: string, address: string): string {
  const [url, own] = [new URL(external), new URL(address)];
  for (const [name, value] of own.searchParams) url.searchParams.set(name, value);
  url.hash = own.hash;
  return url.href;
}

/** What the frame opens: the viewer, and who is told which line to open. */
export function framedAddress(address: string, editorOrigin: string, nonce: string): string {
  const url = new URL(address);
  url.searchParams.set("editor", editorOrigin);
  url.searchParams.set("nonce", nonce);
  return url.href;
}
