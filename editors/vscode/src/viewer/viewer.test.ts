import { expect, test } from "vitest";
import { bareAddress, framedAddress, givenAddress, printedAddress, reachedBy } from "./address";
import { openRequestIn, readOpenRequest } from "./open_message";
import { textPage, viewerPage } from "./webview_page";

const ADDRESS = "http://127.0.0.1:41000/?token=abc";

test("an address counts once its line is complete", () => {
  expect(printedAddress("http://127.0.0.1:41")).toBeNull();
  expect(printedAddress(`${ADDRESS}\n`)).toBe(ADDRESS);
  expect(printedAddress(`a warning\n${ADDRESS}\r\nmore`)).toBe(ADDRESS);
});

test("a typed address needs a token", () => {
  expect(givenAddress(` ${ADDRESS} `)).toBe(ADDRESS);
  for (const text of ["", "127.0.0.1:80", "vscode://x?token=a", "http://127.0.0.1:80/", "http://127.0.0.1:80/?token="])
    expect(() => givenAddress(text)).toThrow(/viewerAddress/);
});

test("a forwarded address keeps its own parts and gets the token", () => {
  expect(bareAddress(`${ADDRESS}#timeline`)).toBe("http://127.0.0.1:41000/");
  const reached = reachedBy("https://x-41000.example.org/p/?tkn=1", `${ADDRESS}#timeline`);
  expect(reached).toBe("https://x-41000.example.org/p/?tkn=1&token=abc#timeline");
});

test("the frame's address names the editor, and keeps the place", () => {
  const url = new URL(framedAddress(`${ADDRESS}#source?line=3`, "vscode-webview://a1", "n0nce"));
  expect(Object.fromEntries(url.searchParams)).toEqual({ token: "abc", editor: "vscode-webview://a1", nonce: "n0nce" });
  expect(url.hash).toBe("#source?line=3");
});

test("the page may frame the viewer's origin alone, and runs its own script alone", () => {
  const page = viewerPage(ADDRESS, "n", { script: "https://x/frame.js", policyNonce: "p" });
  const policy = /Content-Security-Policy" content="([^"]*)"/.exec(page)?.[1];
  expect(policy).toBe(
    "default-src 'none'; frame-src http://127.0.0.1:41000; script-src 'nonce-p'; style-src 'nonce-p'",
  );
  expect(page).toContain('<script nonce="p" src="https://x/frame.js">');
  expect(page).not.toContain("unsafe");
});

test("text of a message is no markup", () => {
  const page = textPage(['<img src=x onerror="alert(1)">&'], "p");
  expect(page).toContain("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&amp;");
  expect(page).not.toContain("frame-src");
});

const frame = {};
const expected = { origin: "http://127.0.0.1:41000", source: frame, nonce: "n" };
const data = { stepscope: 1, kind: "open", file: "a.py", line: 3, nonce: "n" };
const arrived = { data, origin: expected.origin, source: frame };

test("the viewer's message names file and line", () => {
  expect(openRequestIn(arrived, expected)).toEqual({ file: "a.py", line: 3 });
});

test("a message from elsewhere is not believed", () => {
  const others = [
    { ...arrived, origin: "http://127.0.0.1:41001" },
    { ...arrived, source: {} },
    { ...arrived, data: { ...data, nonce: "m" } },
    { ...arrived, data: { ...data, nonce: undefined } },
    { ...arrived, data: { ...data, stepscope: 2 } },
    { ...arrived, data: { ...data, kind: "run" } },
    { ...arrived, data: "open" },
    { ...arrived, data: null },
  ];
  expect(others.map((other) => openRequestIn(other, expected))).toEqual(others.map(() => null));
  expect(openRequestIn({ ...arrived, source: null }, { ...expected, source: null })).toBeNull();
});

test("a line has to be one", () => {
  for (const line of [0, -1, 1.5, "3", Number.NaN, 1e12, undefined])
    expect(readOpenRequest({ file: "a", line })).toBeNull();
  for (const file of ["", 3, null, "a\0b", "a\nb", "x".repeat(5000)])
    expect(readOpenRequest({ file, line: 1 })).toBeNull();
  expect(readOpenRequest({ file: "a", line: 1, command: "rm" })).toEqual({ file: "a", line: 1 });
});
