// What pages say can be read: words, units, and values of charts by keys and by touch.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { partLook } from "../../src/classes";
import { formatNs } from "../../src/format/units";
import { goTo, pagesOf, settled } from "./browser";
import { RANKS, RUN, TRACE } from "./inputs";
import { analyze, report, view } from "./stepscope";
import { viewerOf } from "./viewer";

const HOURS_US = 271_871 * 1e6;
const LONG = "/opt/anaconda3/envs/kineto/lib/python3.11/site-packages/package/of/many/folders/";

/** Two operators that lie hours apart, with stacks of long paths, and the profiler's own slice around them. */
function trace(): unknown {
  const op = (ts: number, file: string) => ({
    ...{ ph: "X", cat: "cpu_op", name: "aten::mm", pid: 1, tid: 1, ts, dur: 50 },
    args: { "External id": ts, "Call stack": `${file}(3): forward;main.py(1): <module>` },
  });
  const own = { ph: "X", cat: "Trace", name: "PyTorch Profiler (0)", pid: "Traces", tid: "PyTorch Profiler", ts: 0 };
  return {
    schemaVersion: 1,
    with_stack: 1,
    traceEvents: [op(10, `${LONG}one.py`), op(HOURS_US, `${LONG}two.py`), { ...own, dur: HOURS_US + 100 }],
  };
}

/** A device that computes, and communicates. */
function device(): unknown {
  const kernel = (name: string, ts: number) => ({
    ...{ ph: "X", cat: "kernel", name, pid: 0, tid: 7, ts, dur: 40 },
    args: { device: 0, stream: 7, correlation: ts },
  });
  const traceEvents = [kernel("gemm", 10), kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 60)];
  return { schemaVersion: 1, deviceProperties: [{ id: 0, name: "NVIDIA A100" }], traceEvents };
}

/** Calls on files that lie hours apart. */
const files = () =>
  [10, HOURS_US].map((ts, id) => {
    const call = { id, name: "read", cat: "POSIX", pid: 1, tid: 1, ts, dur: 50, ph: "X" };
    return JSON.stringify({ ...call, args: { hostname: "a", ret: 10, fname: "/data/a" } });
  });

let folder: string;
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const viewer = viewerOf(async () => {
  folder = mkdtempSync(join(tmpdir(), "stepscope-reading-"));
  writeFileSync(join(folder, "long.json"), JSON.stringify(trace()));
  writeFileSync(join(folder, "device.json"), JSON.stringify(device()));
  writeFileSync(join(folder, "files.pfw"), `[\n${files().join("\n")}\n]`);
  return view([RUN, TRACE, RANKS, ...["long.json", "files.pfw", "device.json"].map((name) => join(folder, name))]);
});
const [OF_RUN, OF_TRACE, OF_RANKS, OF_LONG, OF_FILES, OF_DEVICE] = [0, 1, 2, 3, 4, 5];

/** Everything that a page says, but code. */
const said = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const copy = document.body.cloneNode(true) as HTMLElement;
    for (const code of copy.querySelectorAll("code, script, style, dialog, select")) code.remove();
    const titles = [...copy.querySelectorAll("[title]")].map((element) => element.getAttribute("title"));
    const labels = [...copy.querySelectorAll("[aria-label]")].map((element) => element.getAttribute("aria-label"));
    const texts: string[] = [];
    const walker = document.createTreeWalker(copy, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) texts.push(node.textContent ?? "");
    return [...texts, ...titles, ...labels].join("\n");
  });

const pointed = (page: Page) => page.locator(".pointed").first();

test("numbers of any size have a unit that suits, and digits in groups", async () => {
  const { page, close } = await viewer.show();
  for (const run of [OF_RUN, OF_LONG, OF_FILES]) {
    await goTo(page, `overview?run=${run}`);
    for (const name of await pagesOf(page)) {
      await goTo(page, `${name}?run=${run}`);
      const wrong = (await said(page)).match(/.*(\d us\b|(?<!\d[.])\b\d{4,} (µs|ms|s|h|[KMGT]iB)\b).*/g);
      expect([run, name, wrong]).toEqual([run, name, null]);
    }
  }
  expect(await page.getByText(/^In buckets of/).count()).toBe(0);
  await goTo(page, `io?run=${OF_FILES}`);
  expect(await page.getByText(/^In buckets of/).textContent()).toMatch(/^In buckets of [\d,.]+ (s|h)$/);
  await goTo(page, `overview?run=${OF_LONG}`);
  expect(await page.getByRole("region", { name: "Environment" }).textContent()).toContain("75.5 h");
  await close();
});

test("no page shows names for programs where it means words", async () => {
  const { page, close } = await viewer.show();
  const tables = ["idle_causes", "idle_gaps", "critical_path", "critical_path_slices", "synchronizations", "copies"];
  const places = [...(await pagesOf(page)), ...tables.map((name) => `tables?analysis=${name}`)];
  const kinds = ["cause", "class", "kind", "source", "category", "direction", "waits_for", "bound"];
  let cells = 0;
  for (const place of places) {
    await goTo(page, `${place}${place.includes("?") ? "&" : "?"}run=${OF_TRACE}`);
    expect([place, (await said(page)).split("\n").filter((text) => text.includes("`"))]).toEqual([place, []]);
    for (const kind of kinds) {
      const heads = page.locator(`main th[data-column="${kind}"]`);
      for (const head of await heads.all()) {
        const nth = await head.evaluate((element) => [...(element.parentElement?.children ?? [])].indexOf(element));
        const texts = await head
          .locator("xpath=ancestor::table")
          .locator(`tbody td:nth-child(${nth + 1})`)
          .allTextContents();
        cells += texts.length;
        expect([place, kind, texts.filter((text) => text.includes("_"))]).toEqual([place, kind, []]);
      }
    }
    for (const table of await page.locator("main table[role=grid]").all()) {
      const heads = await table.locator("thead th .label").allTextContents();
      expect([place, heads]).toEqual([place, [...new Set(heads)]]);
    }
  }
  expect(cells).toBeGreaterThan(20);
  await goTo(page, `tables?analysis=critical_path&run=${OF_TRACE}`);
  expect(await page.locator("main thead th .label").allTextContents()).toContain("host window");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("idle");
  await page
    .getByRole("dialog", { name: "Go to" })
    .getByRole("link", { name: /^Idle causes/ })
    .waitFor();
  expect(await page.getByRole("dialog", { name: "Go to" }).textContent()).not.toContain("`");
  await close();
});

test("every table has its title, its definition and its columns in words", async () => {
  const { page, close } = await viewer.show(`tables?run=${OF_TRACE}`);
  const options = page.getByRole("combobox", { name: "Analysis" }).locator("option");
  const names = await options.evaluateAll((all) => all.map((option) => (option as HTMLOptionElement).value));
  expect(names.length).toBeGreaterThan(40);
  // A name of PyTorch is one that a person meets in code.
  const isForPrograms = (text: string) => /`|[a-z]_[a-z]/.test(text.replace("_allgather_base", ""));
  expect((await options.allTextContents()).filter(isForPrograms)).toEqual([]);
  for (const name of names) {
    await goTo(page, `tables?run=${OF_TRACE}&analysis=${name}`);
    const heads = page.locator("main .table-section th");
    const texts = [
      ...(await page.locator("main > p, main .table-section h2").allTextContents()),
      ...(await heads.allTextContents()),
      ...(await heads.evaluateAll((all) => all.map((head) => (head as HTMLElement).title))),
    ];
    expect([name, texts.filter(isForPrograms)]).toEqual([name, []]);
    const columns = await heads.evaluateAll((all) => all.map((head) => (head as HTMLElement).dataset.column));
    expect(columns).not.toContain(undefined);
  }
  await close();
});

test("what is typed as it is read finds rows, in the search and as a filter", async () => {
  const [row] = analyze("idle_causes", TRACE).results.filter(({ cause }) => String(cause).includes("_"));
  const words = partLook(String(row?.cause)).words;
  const { page, close } = await viewer.show(`tables?analysis=idle_causes&run=${OF_TRACE}`);
  const wanted = analyze("idle_causes", TRACE).results.filter(({ cause }) => cause === row?.cause).length;
  const grid = page.getByRole("grid", { name: "Idle causes", exact: true });
  const rows = async () => Number(await grid.getAttribute("aria-rowcount")) - 1;
  await page.getByRole("searchbox", { name: "Search rows" }).fill(words);
  await page.waitForURL(/q=/);
  await settled(page);
  expect(await rows()).toBe(wanted);
  await goTo(page, `tables?analysis=idle_causes&run=${OF_TRACE}`);
  await page.getByText("Filter", { exact: true }).click();
  await page.locator("form.filter select").first().selectOption("cause");
  await page.locator("form.filter select").nth(1).selectOption("eq");
  await page.locator("form.filter input").fill(words);
  await page.getByRole("button", { name: "Add" }).click();
  await page.getByRole("button", { name: `Remove the filter cause = ${words}` }).waitFor();
  await settled(page);
  expect(await rows()).toBe(wanted);
  await close();
});

test("rows that stand for others are not counted among them, wherever there are such rows", async () => {
  const steps = analyze("step_breakdown", RUN).results.filter(({ row }) => row === "one").length;
  const { page, close } = await viewer.show(`io?run=${OF_RUN}`);
  const status = (title: string) => page.getByRole("region", { name: title, exact: true }).getByRole("status").first();
  expect(await status("How long steps wait for data").textContent()).toBe(`${steps} rows, and 1 that sums them up`);
  await goTo(page, `tables?analysis=step_breakdown&run=${OF_RUN}`);
  expect(await status("Step breakdown").textContent()).toBe(`${steps} rows, and 1 that sums them up`);
  expect(await page.locator("main th[data-column=row]").count()).toBe(0);
  await goTo(page, `tables?analysis=step_breakdown&run=${OF_RUN}&where=step:ge:${steps - 2}`);
  expect(await status("Step breakdown").textContent()).toMatch(new RegExp(`^\\d of ${steps} rows$`));
  const launches = analyze("launch_statistics", TRACE).results;
  const calls = launches.filter(({ row }) => row === "one").length;
  if (calls > 0) {
    await goTo(page, `kernels?run=${OF_TRACE}`);
    expect(await status("Launches").textContent()).toMatch(new RegExp(`^${calls} rows?, and 1 that sums them up$`));
    expect(await page.getByRole("grid", { name: "Launches" }).locator("tr.sum").textContent()).toMatch(/^0?all/);
  }
  await close();
});

test("a histogram is read with keys, and with a finger", async () => {
  const rows = analyze("kernel_durations", TRACE).results;
  const ranges = rows
    .filter(({ name }) => name === rows[0]?.name)
    .toSorted((a, b) => Number(a.from_ns) - Number(b.from_ns));
  const words = ranges.map(({ from_ns, to_ns }) => `${formatNs(Number(from_ns))} up to ${formatNs(Number(to_ns))}: `);
  const { page, close } = await viewer.show(`kernels?run=${OF_TRACE}`, { hasTouch: true });
  const section = page.getByRole("region", { name: "Durations" });
  const chart = section.getByRole("slider").first();
  const read = section.locator(".pointed").first();
  await chart.focus();
  for (const [key, at] of [
    ["ArrowRight", 0],
    ["ArrowRight", Math.min(1, words.length - 1)],
    ["End", words.length - 1],
    ["Home", 0],
  ] as const) {
    await page.keyboard.press(key);
    await read.filter({ hasText: words[at] }).waitFor();
    expect(await chart.getAttribute("aria-valuetext")).toBe(await read.textContent());
  }
  const last = chart.locator("rect[fill=transparent]").last();
  await last.scrollIntoViewIfNeeded();
  const box = await last.boundingBox();
  if (!box) throw new Error("no column");
  await page.touchscreen.tap(box.x + box.width / 2, box.y + box.height - 4);
  await read.filter({ hasText: words.at(-1) }).waitFor();
  await close();
});

test("a chart over time is read with keys, row by row", async () => {
  const { page, close } = await viewer.show(`io?run=${OF_FILES}&show=time`);
  const chart = page.locator(".time-series").getByRole("slider");
  await chart.focus();
  await page.keyboard.press("Home");
  const when = page.locator(".time-series .when");
  await when.filter({ hasText: /^at 0 ns/ }).waitFor();
  const values = () =>
    page.locator(".time-series .value").evaluateAll((all) => all.map((each) => (each as HTMLElement).title));
  expect((await values())[0]).toBe("50000 ns");
  expect(await chart.getAttribute("aria-valuetext")).toMatch(/^at 0 ns: in any call 50.0 µs, /);
  await page.keyboard.press("ArrowRight");
  await when.filter({ hasNotText: /^at 0 ns/ }).waitFor();
  await page.keyboard.press("End");
  const place = Number(await chart.getAttribute("aria-valuemax"));
  expect(Number(await chart.getAttribute("aria-valuenow"))).toBe(place);
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(
    (place) => document.querySelector(".time-series [role=slider]")?.getAttribute("aria-valuenow") === String(place),
    place - 1,
  );
  await close();
});

test("cells of the step map, parts of devices and boxes of modules say their values when they are focused or pointed at", async () => {
  const [step] = analyze("step_breakdown", RANKS).results.filter(({ row }) => row === "one");
  const { page, close } = await viewer.show(`distributed?run=${OF_RANKS}`);
  await page.locator(".heat-map [data-cell]").first().focus();
  const ofCell = `step ${step?.step} of rank ${step?.rank}: `;
  await page.locator(".pointed").filter({ hasText: ofCell }).waitFor();
  await goTo(page, `modules?run=${OF_RANKS}`);
  const box = page.locator("svg.flame [role=button]").first();
  await box.focus();
  expect(await pointed(page).textContent()).toBe(await box.getAttribute("aria-label"));
  // Of another step it would be wrong.
  await page.getByRole("combobox", { name: "Step", exact: true }).selectOption(String(step?.step));
  await pointed(page).filter({ hasText: "Point at a box" }).waitFor();
  await goTo(page, `distributed?run=${OF_DEVICE}`);
  const bars = page.getByRole("region", { name: "Computation and communication", exact: true });
  await bars.locator(".device-bars rect").nth(1).hover();
  const exposed = "rank 0, GPU 0: exposed communication 40.0 µs (40000 ns)";
  await bars.locator(".pointed").filter({ hasText: exposed }).waitFor();
  const table = bars.getByRole("grid", { name: "Computation and communication as a table" });
  expect(await table.locator("tbody td").allTextContents()).toContain("40.0 µs");
  await close();
});

test("a tree of modules answers the pointer: the whole row is shaded, and a click shows what is below", async () => {
  const { page, close } = await viewer.show(`modules?run=${OF_RANKS}`);
  const row = page.getByRole("treegrid").locator("tbody tr").nth(1);
  const shades = () =>
    row.evaluate((element) => {
      const opaque = (of: Element) => getComputedStyle(of).backgroundColor;
      const none = "rgba(0, 0, 0, 0)";
      return [...element.children].map((cell) => (opaque(cell) === none ? opaque(element) : opaque(cell)));
    });
  const before = await shades();
  await row.locator("td").nth(1).hover();
  const after = await shades();
  expect(new Set(after).size).toBe(1);
  expect(after[0]).not.toBe(before[0]);
  const path = (await row.locator("td").first().getAttribute("title")) ?? "";
  await row.locator("td").nth(1).click();
  await page.waitForURL((url) => new URLSearchParams(url.hash.split("?")[1]).get("root") === path);
  expect(await page.getByRole("treegrid").locator("tbody tr td").first().getAttribute("title")).toBe(path);
  await close();
});

test("bars of files show the ends of their paths, at which they differ", async () => {
  const { page, close } = await viewer.show(`source?run=${OF_LONG}`);
  const names = page.getByRole("region", { name: "Files", exact: true }).locator(".bar-name");
  const seen = await names.evaluateAll((all) =>
    all.map((name) => {
      const text = document.createTreeWalker(name, NodeFilter.SHOW_TEXT).nextNode() as Text;
      const range = document.createRange();
      range.setStart(text, text.length - 6);
      range.setEnd(text, text.length);
      const [end, box] = [range.getBoundingClientRect(), name.getBoundingClientRect()];
      return [text.data.slice(-6), end.left >= box.left - 1 && end.right <= box.right + 1];
    }),
  );
  expect(seen.filter(([end]) => /(one|two)\.py/.test(String(end)))).toEqual([
    ["one.py", true],
    ["two.py", true],
  ]);
  await close();
});

test("the full stop begins with the job, not with the profiler's own slice", async () => {
  const { page, close } = await viewer.show(`timeline?run=${OF_LONG}`);
  await page.keyboard.press(".");
  const title = page.locator(".timeline-title code");
  await title.waitFor();
  expect(await title.textContent()).toBe("aten::mm");
  await close();
});

test("one name is one, several are names", async () => {
  const { page, close } = await viewer.show(`timeline?run=${OF_LONG}&q=aten::mm`);
  await page
    .locator(".timeline-search summary")
    .filter({ hasText: /^1 name\b(?!s)/ })
    .waitFor();
  await close();
});

test("few bars are no wider than many", async () => {
  const { page, close } = await viewer.show(`overview?run=${OF_RANKS}`);
  const chart = page.getByRole("slider", { name: "Average step of each rank" });
  // The first bar is less than 100 pixels wide, behind the axis.
  await chart.hover({ position: { x: 64 + 150, y: 100 } });
  expect(await chart.getAttribute("aria-valuetext")).toMatch(/^rank 1:/);
  await close();
});

test("a link of an advice shows its slice as large as it can be seen", async () => {
  const { page, close } = await viewer.show();
  const advice = report(TRACE).advice.filter(({ start_ns, slice }) => start_ns !== null && slice !== null);
  const nth = report(TRACE).advice.findIndex(({ start_ns, slice }) => start_ns !== null && slice !== null);
  expect(advice.length).toBeGreaterThan(0);
  await goTo(page, `overview?run=${OF_TRACE}`);
  const listed = page.getByRole("region", { name: "Advice" }).locator("li");
  await listed.nth(nth).getByRole("link", { name: "On the timeline" }).click();
  await page.locator(".timeline-title code").waitFor();
  await page.waitForURL(/view=\d+-\d+/);
  const [, start, end] = /view=(\d+)-(\d+)/.exec(page.url()) ?? [];
  const slice = await page.locator(".timeline-facts dd .value").nth(1).getAttribute("title");
  expect((Number(end) - Number(start)) / Number(slice?.split(" ")[0])).toBeLessThan(10);
  await close();
});
