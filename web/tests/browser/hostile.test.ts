// Text of a trace is text, wherever it is shown.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { printable } from "../../src/format/printable";
import { at, goTo, open, pagesOf, settled } from "./browser";
import { analyze, view } from "./stepscope";
import { viewerOf } from "./viewer";

const TEXTS = [
  "<script>globalThis.broken=1</script>",
  "<img src=x onerror=globalThis.broken=1>",
  '"><svg onload=globalThis.broken=1>',
  "'onmouseover='globalThis.broken=1",
  "javascript:globalThis.broken=1",
  "</title><iframe srcdoc='<script>parent.broken=1</script>'>",
  "{{constructor.constructor('globalThis.broken=1')()}}",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is to stay one
  "${globalThis.broken=1}",
  "&lt;b&gt;&#x3c;b&#x3e;",
  "\u202egnp.exe\u2066",
  "a\u0000b\tc\nd",
  "`<b>`",
  "=cmd|'/c calc'!A1",
  "x".repeat(5000),
  "__proto__",
];

/** A trace in which every text is an operator, a kernel, a stream's process, a module, a frame and an argument. */
function trace(): unknown {
  const events = TEXTS.flatMap((text, at) => {
    const ts = 1000 + at * 100;
    const args = {
      "External id": at + 1,
      correlation: at + 1,
      device: 0,
      stream: 7,
      [text]: text,
      "Call stack": `${text};${text}`,
    };
    const python = { "Python id": 2 * at + 1, "Python parent id": null, "Python module id": at };
    const module = { "Python id": 2 * at + 2, "Python parent id": 2 * at + 1, "Python module id": at };
    return [
      { ph: "X", cat: "python_function", name: `${text}(1): ${text}`, pid: 1, tid: 1, ts, dur: 90, args: python },
      {
        ph: "X",
        cat: "python_function",
        name: `nn.Module: ${text}_0`,
        pid: 1,
        tid: 1,
        ts: ts + 1,
        dur: 88,
        args: module,
      },
      {
        ph: "X",
        cat: "cpu_op",
        name: text,
        pid: 1,
        tid: 1,
        ts: ts + 2,
        dur: 80,
        args: { ...args, "Input Dims": [text], "Collective name": text, "Process Group Name": text, dtype: text },
      },
      { ph: "X", cat: "cuda_runtime", name: text, pid: 1, tid: 1, ts: ts + 5, dur: 5, args },
      { ph: "X", cat: "kernel", name: text, pid: 0, tid: 7, ts: ts + 20, dur: 30, args },
    ];
  });
  const named = { ph: "M", name: "process_name", pid: 1, tid: 0, args: { name: TEXTS[0] } };
  const device = { id: 0, name: TEXTS[1], totalGlobalMem: 1e9, numSms: 10, computeMajor: 8, computeMinor: 0 };
  return { schemaVersion: 1, deviceProperties: [device], [TEXTS[1] ?? ""]: TEXTS[1], traceEvents: [named, ...events] };
}

let folder: string;
let input: string;
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const viewer = viewerOf(async () => {
  folder = mkdtempSync(join(tmpdir(), "stepscope-hostile-"));
  input = join(folder, "<img src=x onerror=globalThis.broken=1>.json");
  writeFileSync(input, JSON.stringify(trace()));
  // A second run, so that there is something to compare.
  const other = join(folder, "'><b>other.json");
  writeFileSync(other, JSON.stringify(trace()));
  return view([input, other]);
});

/** Points at each row that is shown. Rows stand still: there is no need to wait until they do. */
async function pointAtRows(page: Page): Promise<void> {
  for (const row of await page.locator("tr[data-row]:visible").all()) await row.hover({ force: true });
}

test("no text of a trace becomes an element or runs, on any page", async () => {
  const { page, close } = await viewer.show();
  const names = await pagesOf(page);
  expect(names).toEqual(expect.arrayContaining(["kernels", "distributed", "source", "compare"]));
  const places = [...names, ...["shapes", "stack", "module", "category"].map((group) => `operators?group=${group}`)];
  const analyses = ["findings", "idle_causes", "idle_gaps", "critical_path_slices", "synchronizations", "queue_length"];
  places.push(...TEXTS.map((text) => `source?${new URLSearchParams({ file: text, line: "1" })}`));
  places.push("compare?tree=operator_tree", `compare?op=${encodeURIComponent(TEXTS[1] ?? "")}`);
  places.push("kernels?group=properties", ...analyses.map((name) => `tables?analysis=${name}`));
  for (const place of places) {
    await goTo(page, place);
    await pointAtRows(page);
    const strange = await page.evaluate(
      () => document.querySelectorAll("main img, main iframe, main script, main b").length,
    );
    expect([place, strange, await page.evaluate("globalThis.broken")]).toEqual([place, 0, undefined]);
  }
  // Most of these texts are no file that a stack names.
  await close((trouble) => trouble.includes("404"));
});

test("no name of a file or a process becomes an element or runs", async () => {
  const files = join(folder, "files.pfw");
  const rows = TEXTS.flatMap((fname, at) =>
    ["open", "read", "write"].map((name, more) => ({
      ...{ id: 3 * at + more, name, cat: "POSIX", pid: at, tid: at, ts: 100 * at + 10 * more, dur: 5, ph: "X" },
      args: { hostname: TEXTS[0], ret: 10, fname },
    })),
  );
  const names = TEXTS.map((name, pid) => ({
    id: 0,
    name: "process_name",
    cat: "dftracer",
    pid,
    tid: pid,
    ph: "M",
    args: { name },
  }));
  writeFileSync(files, `[\n${[...names, ...rows].map((row) => JSON.stringify(row)).join("\n")}\n]`);
  const traced = await view([files]);
  const { page, close } = await open(viewer.browser, at(traced.url, "io"));
  await settled(page);
  const cells = page.getByRole("grid", { name: "Files", exact: true }).locator("tbody td.path");
  const shown = await cells.evaluateAll((cells) => cells.map((cell) => (cell as HTMLElement).title));
  for (const text of TEXTS.filter((text) => text.length < 100)) expect(shown).toContain(printable(text));
  await pointAtRows(page);
  const strange = "main img, main iframe, main script, main b";
  expect(await page.locator(strange).count()).toBe(0);
  expect(await page.evaluate("globalThis.broken")).toBeUndefined();
  await close();
  await traced.stop();
});

test("characters that are not seen, or turn the text around, are written out wherever a name is shown", async () => {
  const { page, close } = await viewer.show("operators");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
  const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;
  const names = await pagesOf(page);
  for (const place of [...names, "operators?group=stack", "tables?analysis=idle_gaps", "tables?analysis=graphs"]) {
    await goTo(page, place);
    const said = await page.evaluate(() => {
      const attributes = [...document.querySelectorAll("main *")].flatMap((element) => [
        element.getAttribute("title") ?? "",
        element.getAttribute("aria-label") ?? "",
      ]);
      return [document.body.textContent ?? "", document.title, ...attributes];
    });
    expect([place, said.filter((text) => unseen.test(text))]).toEqual([place, []]);
  }
  await goTo(page, "operators?q=gnp.exe");
  expect(await page.locator('tr[data-row="0"] td').first().textContent()).toBe("\\u202egnp.exe\\u2066");
  await page.locator('tr[data-row="0"]').first().click();
  expect(await page.locator(".row-detail dd .pre").first().textContent()).toBe("\\u202egnp.exe\\u2066");
  await close();
});

test("a name of a megabyte makes no long address, and what is known of its slice can be reached", async () => {
  const long = join(folder, "long.json");
  const name = `long ${"y".repeat(1_000_000)}`;
  const event = { ph: "X", cat: "cpu_op", name, pid: 1, tid: 1, ts: 10, dur: 50, args: { "External id": 1 } };
  const other = { ...event, name: `long ${"y".repeat(300)} other`, ts: 100 };
  writeFileSync(long, JSON.stringify({ traceEvents: [event, other] }));
  const traced = await view([long]);
  const { page, close } = await open(viewer.browser, at(traced.url, "operators"));
  await settled(page);
  for (const link of ["Its calls on the timeline"]) {
    await page.locator('tr[data-row="0"]').first().click();
    const href = await page.getByRole("link", { name: link }).getAttribute("href");
    expect(href?.length).toBeLessThan(2_000);
    await page.getByRole("link", { name: link }).click();
  }
  await settled(page);
  await page.getByRole("button", { name: "Next hit" }).click();
  await page.locator(".timeline-title code").waitFor();
  expect(page.url().length).toBeLessThan(4_000);
  const panel = await page.getByRole("tabpanel").boundingBox();
  const facts = await page.locator(".timeline-facts dt").first().boundingBox();
  expect((facts?.y ?? 0) - (panel?.y ?? 0)).toBeLessThan(200);
  // The link leads there again, to this one of two that begin alike.
  const again = await open(viewer.browser, at(traced.url, new URL(page.url()).hash.slice(1)));
  await again.page.locator(".timeline-title code").waitFor();
  expect(await again.page.locator(".timeline-facts dd .value").nth(1).getAttribute("title")).toBe("50000 ns");
  await again.close();
  await goTo(page, "operators");
  await page.locator('tr[data-row="0"]').first().click();
  await page.getByRole("button", { name: "only these: rows with this name" }).click();
  await settled(page);
  expect(page.url().length).toBeLessThan(4_000);
  expect(await page.locator("tr[data-row]").count()).toBe(1);
  await close();
  await traced.stop();
});

test("the text is there, letter for letter, in rows and in what they open", async () => {
  const names = analyze("operators", input).results.map((row) => String(row.name));
  expect(names).toContain(TEXTS[1]);
  const { page, close } = await viewer.show("operators");
  for (const name of names.filter((name) => name.length < 100)) {
    const cell = page.getByRole("grid", { name: "All operators" }).locator("tbody td:first-child");
    const shown = await cell.evaluateAll((cells) => cells.map((cell) => (cell as HTMLElement).title));
    expect(shown).toContain(printable(name));
  }
  await page.locator('tr[data-row="0"]').first().click();
  const first = await page.locator('tr[data-row="0"] td').first().getAttribute("title");
  expect(await page.locator(".row-detail dd .pre").first().textContent()).toBe(first);
  await close();
});

test("the timeline shows it as text: a slice with all that is known of it, lists, sums", async () => {
  const { page, close } = await viewer.show();
  for (const text of TEXTS.filter((text) => text.length < 100 && !text.includes("\u0000"))) {
    await goTo(page, `timeline?q=${encodeURIComponent(text)}`);
    await page.getByRole("button", { name: "Next hit" }).click();
    await page.locator(".timeline-title code").waitFor();
    await page.getByRole("tab", { name: "List" }).click();
    await page.locator(".timeline-rows tbody tr").first().waitFor();
    await page.getByRole("tab", { name: "Slice" }).click();
    expect(await page.locator(".timeline-title code").textContent()).toContain(printable(text.trim()));
    const strange = await page.evaluate(
      () => document.querySelectorAll("main img, main iframe, main script, main b").length,
    );
    expect([text, strange, await page.evaluate("globalThis.broken")]).toEqual([text, 0, undefined]);
  }
  await close();
});

test("hostile text in the address is text, too", async () => {
  const { page, context } = await open(viewer.browser, viewer.server.url);
  /** Loads an address from nothing, as a link from elsewhere does. */
  const load = async (place: string, whenThere: string) => {
    await page.goto("about:blank");
    await page.goto(at(viewer.server.url, place));
    await page.locator(whenThere).first().waitFor();
    expect(await page.evaluate("globalThis.broken")).toBeUndefined();
  };
  for (const text of TEXTS) {
    await load(encodeURIComponent(text), ".notice");
    const query = new URLSearchParams({ q: text, cols: text, analysis: text, group: text }).toString();
    await load(`operators?${query}`, "main h1, main .notice");
  }
  await context.close();
});
