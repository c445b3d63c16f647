import { beforeEach, expect, test } from "vitest";
import { framingEditor, framingEditorIn, openInFramingEditor, takeFramingEditor } from "./frame";

const NONCE = "0123456789abcdef";
const TOLD = `http://127.0.0.1:1/?editor=vscode-webview%3A%2F%2Fab1&token=t&nonce=${NONCE}#source?line=3`;

/** A page at this address, in a frame or not, with what it posts and where its address went. */
function pageAt(href: string, isFramed = true) {
  const posted: unknown[][] = [];
  const parent = { postMessage: (...words: unknown[]) => posted.push(words) };
  const replaced: string[] = [];
  const history = { state: null, replaceState: (_state: unknown, _title: string, url: URL) => replaced.push(url.href) };
  const page: Record<string, unknown> = { location: { href }, history };
  page.parent = isFramed ? parent : page;
  return { page: page as unknown as Window, posted, replaced };
}

beforeEach(() => {
  framingEditor.value = null;
});

test("the editor that the address names is told file and line, and nothing else", () => {
  const { page, posted } = pageAt(TOLD);
  takeFramingEditor(page);
  openInFramingEditor("a/b.py", 7, page);
  const message = { stepscope: 1, kind: "open", file: "a/b.py", line: 7, nonce: NONCE };
  expect(posted).toEqual([[message, "vscode-webview://ab1"]]);
});

test("the address keeps its token and its place, and loses the editor", () => {
  const { page, replaced } = pageAt(TOLD);
  takeFramingEditor(page);
  expect(replaced).toEqual(["http://127.0.0.1:1/?token=t#source?line=3"]);
  const bare = pageAt("http://127.0.0.1:1/?token=t");
  takeFramingEditor(bare.page);
  expect(bare.replaced).toEqual([]);
});

test("without an editor in the address, or without a frame, nothing is posted", () => {
  for (const { page, posted } of [pageAt("http://127.0.0.1:1/?token=t"), pageAt(TOLD, false)]) {
    takeFramingEditor(page);
    expect(framingEditor.value).toBeNull();
    openInFramingEditor("a.py", 1, page);
    expect(posted).toEqual([]);
  }
});

test("only one origin is told, never all", () => {
  const of = (editor: string, nonce = NONCE) =>
    framingEditorIn(new URL(`http://h/?${new URLSearchParams({ editor, nonce })}`))?.origin ?? null;
  for (const origin of [
    "vscode-webview://1d3a",
    "https://a.vscode-cdn.net",
    "http://x.localhost:3000",
    "http://[::1]:80",
  ])
    expect(of(origin)).toBe(origin);
  for (const no of ["*", "null", "", "/", "file:///", "javascript:alert(1)", "https://a/b", "https://a?b", "https://*"])
    expect(of(no)).toBeNull();
  expect([of("https://a", "short"), of("https://a", "0123456789abcdef;")]).toEqual([null, null]);
});
