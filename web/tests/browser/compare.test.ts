// Two runs side by side: the page says what `stepscope compare` says, and everything on it works without a mouse.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Row } from "../../src/api/types";
import { formatCell } from "../../src/format/cell";
import { at, goTo, open, settled } from "./browser";
import { INPUTS, RANKS, RUN, STEPS } from "./inputs";
import { traceOf } from "./steps_trace";
import { compare, type View, view } from "./stepscope";
import { inOrder, shownColumns, shownOf, shownRows } from "./table";
import { viewerOf } from "./viewer";
import { violations } from "./violations";

let folder: string;
let [before, now] = ["", ""];
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const viewer = viewerOf(async () => {
  folder = mkdtempSync(join(tmpdir(), "stepscope-compare-"));
  [before, now] = [join(folder, "before.json"), join(folder, "now.json")];
  writeFileSync(before, traceOf([1000, 1010, 1020, 1030, 1040], "gemm"));
  writeFileSync(now, traceOf([1500, 1510, 1520, 1530, 1540], "gemm"));
  return view([before, now]);
});

/** Fails unless a table has the rows of the command. */
async function expectTable(page: Page, title: string, what: string, a: string, b: string): Promise<number> {
  const { results } = compare(a, b, what);
  const columns = await shownColumns(page, title);
  const rows = await shownRows(page, title);
  expect(inOrder(rows)).toEqual(inOrder(shownOf(results, columns)));
  return rows.length;
}

/** The sentence on steps. */
const verdictOf = (page: Page) => page.getByRole("region", { name: "Verdict" }).locator("p").textContent();

test("the page says what the command says", async () => {
  const { page, close } = await viewer.show("compare");
  const [steps] = compare(before, now, "steps").results;
  const said = page.getByRole("region", { name: "Steps" });
  expect(await verdictOf(page)).toBe(steps?.says);
  const values = await said
    .locator("tbody .value")
    .evaluateAll((all) => all.map((each) => (each as HTMLElement).title));
  const of = (side: string) => [
    `${steps?.[`${side}_steps`]}`,
    ...["median", "mean", "p95"].map((name) => `${steps?.[`${side}_${name}_ns`]} ns`),
  ];
  expect(values).toEqual([...of("a"), ...of("b")]);
  for (const [title, what] of [
    ["Operators", "operators"],
    ["Kernels", "kernels"],
    ["Modules", "modules"],
  ] as const) {
    expect(await expectTable(page, title, what, before, now), title).toBeGreaterThan(0);
  }
  await close();
});

test("histograms have the steps and calls of both runs", async () => {
  const { page, close } = await viewer.show("compare?op=aten%3A%3Amm");
  const counts = async (name: string) => {
    const titles = await page.getByRole("slider", { name }).locator("title").allTextContents();
    return titles.map((title) => /: ([\d,]+) \w+ before, ([\d,]+) \w+ now$/.exec(title)?.slice(1).map(Number));
  };
  const steps = compare(before, now, "step_durations").results;
  expect(await counts("Steps by duration")).toEqual(steps.map((row) => [row.a_steps, row.b_steps]));
  const calls = compare(before, now, "operator_durations").results.filter((row) => row.name === "aten::mm");
  const shown = await counts("Calls of aten::mm by duration");
  expect(shown.filter((pair) => pair?.some((count) => count > 0))).toEqual(
    calls.map((row) => [row.a_count, row.b_count]),
  );
  expect(calls.length).toBeGreaterThan(1);
  await close();
});

test("a row leads to the run's own page, and to its histogram", async () => {
  const { page, close } = await viewer.show("compare");
  const table = page.getByRole("grid", { name: "Operators", exact: true });
  await table.locator("tr[data-row]").filter({ hasText: "aten::mm" }).click();
  await page.getByRole("link", { name: "How long its calls take" }).click();
  await page.getByRole("slider", { name: "Calls of aten::mm by duration" }).waitFor();
  await page.getByRole("link", { name: "In now.json" }).click();
  await settled(page);
  expect(page.url()).toMatch(/#operators\?.*run=now\.json/);
  expect((await shownRows(page, "All operators")).length).toBe(1);
  await page.goBack();
  await page.getByRole("slider", { name: "Calls of aten::mm by duration" }).waitFor();
  await close();
});

test("boxes say how modules and operators have changed, and are reached by keys", async () => {
  const { page, close } = await viewer.show("compare");
  for (const tree of ["modules", "operator_tree"] as const) {
    await goTo(page, `compare?tree=${tree}`);
    const measure = tree === "modules" ? "device_total" : "host_total";
    const rows = compare(before, now, tree).results;
    const boxes = page.getByRole("region", { name: "Tree of calls" }).locator("svg.chart [role=button]");
    const labels = await boxes.evaluateAll((all) => all.map((box) => box.getAttribute("aria-label") ?? ""));
    const words = (row: (typeof rows)[number]) => {
      const [value, ratio] = [row[`b_${measure}_ns`], row[`change_${measure}_ratio`]];
      return `${formatCell("ns", value)}, +${formatCell("ratio", ratio)}`;
    };
    expect(labels.map((label) => label.slice(label.lastIndexOf(": ") + 2)).sort()).toEqual(rows.map(words).sort());
    expect(rows.length).toBe(2);
  }
  await goTo(page, "compare?tree=operator_tree");
  const first = page.getByRole("region", { name: "Tree of calls" }).locator("svg.chart [role=button]").first();
  await first.focus();
  await page.keyboard.press("ArrowDown");
  const name = await page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
  expect(name).toContain("aten::linear › aten::mm");
  await page.keyboard.press("Enter");
  await page.waitForURL(/root=aten/);
  await page.getByRole("link", { name: /^Show all, not only/ }).waitFor();
  await close();
});

test("the tree of all calls says how they have changed, and changes of self times sum to the whole", async () => {
  const { page, close } = await viewer.show("compare?tree=call_tree&by=b_host_total_ns");
  const rows = compare(before, now, "call_tree").results;
  const sum = (column: string, of = rows) => of.reduce((sum, row) => sum + Number(row[column] ?? 0), 0);
  const roots = rows.filter(({ parent }) => parent === null);
  for (const measure of ["host", "device"])
    expect(sum(`change_${measure}_self_ns`)).toBe(sum(`change_${measure}_total_ns`, roots));
  const labels = await page
    .getByRole("region", { name: "Tree of calls" })
    .locator("svg.chart [role=button]")
    .evaluateAll((all) => all.map((box) => box.getAttribute("aria-label") ?? ""));
  const [root] = roots;
  expect(labels[0]).toContain(`${root?.name}: ${formatCell("ns", root?.b_host_total_ns ?? null)}`);
  const shown = await shownRows(page, "Calls by caller");
  expect(shown.length).toBe(rows.length);
  await close();
});

test("turned round, the tree says who calls what has changed, by operations as well", async () => {
  const { page, close } = await viewer.show("compare?tree=callers&by=b_flops");
  const rows = compare(before, now, "callers").results;
  const roots = rows.filter(({ parent }) => parent === null);
  const [most] = roots.toSorted((one, other) => Number(other.b_flops) - Number(one.b_flops));
  if (!most) throw new Error("nothing is called");
  expect([most.name, most.b_flops]).toEqual(["aten::mm", 2 * 64 ** 3]);
  const ofTree = compare(before, now, "call_tree").results.filter(({ parent }) => parent === null);
  const sum = (of: readonly Row[], column: string) => of.reduce((sum, row) => sum + Number(row[column] ?? 0), 0);
  for (const column of ["change_host_total_ns", "change_device_total_ns", "change_allocated_bytes", "change_flops"])
    expect(sum(roots, column), column).toBe(sum(ofTree, column));
  const box = page.getByRole("region", { name: "Tree of calls" }).locator("svg.chart [role=button]").first();
  const label = await box.getAttribute("aria-label");
  expect(label).toContain(`${most.name}: ${formatCell("count", most.b_flops ?? null)}`);
  expect((await shownRows(page, "Calls with their callers")).length).toBe(rows.length);
  await close();
});

/** What both canvases show, as their links say. */
const shownTimes = (page: Page) =>
  page.getByRole("application").evaluateAll((all) => all.map((canvas) => (canvas as HTMLElement).dataset.view ?? ""));

test("timelines move together, by keys too, and the link brings it back", async () => {
  const { page, close } = await viewer.show("compare", { reducedMotion: "reduce" });
  const begin = await shownTimes(page);
  expect(new Set(begin).size).toBe(1);
  const second = page.getByRole("application").nth(1);
  await second.focus();
  await page.keyboard.press("w");
  await page.waitForURL(/view=/);
  const zoomed = await shownTimes(page);
  expect(new Set(zoomed).size).toBe(1);
  expect(zoomed).not.toEqual(begin);
  const other = await open(viewer.browser, at(viewer.server.url, new URL(page.url()).hash.slice(1)));
  await settled(other.page);
  expect(await shownTimes(other.page)).toEqual(zoomed);
  await other.close();
  await page.keyboard.press("f");
  await page.waitForFunction(
    (begin) => document.querySelector<HTMLElement>("[role=application]")?.dataset.view === begin,
    begin[0],
  );
  await page.getByRole("combobox", { name: "Step now" }).selectOption("3");
  await settled(page);
  expect(page.url()).toContain("b-step=3");
  await close();
});

test("what is doubtful about either side is told, and rows say which run they are of", async () => {
  // Only the second has kernels whose launch is not known.
  const unlinked = join(folder, "unlinked.json");
  writeFileSync(unlinked, traceOf([1000, 1010, 1020], "gemm").replaceAll(/"correlation":\d+,/g, ""));
  const findings = compare(before, unlinked, "steps").findings;
  expect(findings.length).toBeGreaterThan(0);
  const other = await view([before, unlinked]);
  const { page, close } = await open(
    viewer.browser,
    at(other.url, "compare?o.cols=name,runs,a_count_per_step,b_count_per_step"),
  );
  await settled(page);
  const told = page.locator("details.banner", { hasText: "Findings of the two runs" });
  await told.locator("summary").first().click();
  for (const { code } of findings) await told.getByText(code, { exact: true }).waitFor();
  const table = page.getByRole("grid", { name: "Operators", exact: true });
  const heads = await table.locator("thead th").allTextContents();
  expect(heads.map((head) => head.trim())).toEqual(["name", "runs", "before count per step", "now count per step"]);
  await close();
  await other.stop();
});

test("the sides are swapped, and stand in the address", async () => {
  const { page, close } = await viewer.show("compare");
  await page.getByRole("button", { name: "Swap" }).click();
  await page.waitForURL(/run=now\.json/);
  await settled(page);
  const [steps] = compare(now, before, "steps").results;
  expect(await verdictOf(page)).toBe(steps?.says);
  const other = await open(viewer.browser, at(viewer.server.url, new URL(page.url()).hash.slice(1)));
  await settled(other.page);
  expect(await verdictOf(other.page)).toBe(steps?.says);
  await other.close();
  await page.goBack();
  await page.waitForFunction(
    (says) => !document.querySelector("main")?.textContent?.includes(says),
    String(steps?.says),
  );
  await close();
});

test.each(["light", "dark"] as const)("axe-core finds nothing, %s", async (colorScheme) => {
  const { page, close } = await viewer.show("compare", { colorScheme });
  expect(await violations(page)).toEqual([]);
  await close();
});

test("nothing sticks out at 400 pixels", async () => {
  const { page, close } = await viewer.show("compare", { viewport: { width: 400, height: 800 } });
  const [content, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  expect(content).toBeLessThanOrEqual(room ?? 0);
  await close();
});

test("a run alone says how to open a second one, and a run that is not there is an error", async () => {
  const alone = await view([before]);
  const { page, close } = await open(viewer.browser, at(alone.url, "compare"));
  await settled(page);
  expect(await page.locator("main .notice").textContent()).toContain("stepscope view A B");
  await close();
  await alone.stop();
  const wrong = await open(viewer.browser, at(viewer.server.url, "compare?b=9"));
  await wrong.page.getByRole("alert").waitFor();
  expect(await wrong.page.getByRole("alert").textContent()).toContain("no such run");
  await wrong.close();
});

/** A row of the account as the page shows it: the name, and before, now and change in nanoseconds. */
interface Shown {
  readonly row: string;
  readonly name: string;
  readonly times: readonly bigint[];
}

/** The rows of the account, from what a person reads: milliseconds with six decimals. */
async function accountOf(page: Page): Promise<Shown[]> {
  const rows = await page.getByRole("table", { name: "Difference of the mean steps" }).evaluate((table) =>
    [...table.querySelectorAll("tbody tr, tfoot tr")].map((row) => ({
      row: row.closest("tfoot") ? "total" : row.classList.contains("part") ? "part" : "class",
      name:
        row
          .querySelector("th")
          ?.textContent?.replace(/^[▸▾·]/, "")
          .trim() ?? "",
      times: [...row.querySelectorAll("td.number .value")].slice(0, 3).map((value) => value.textContent ?? ""),
    })),
  );
  const ns = (text: string) => {
    expect(text).toMatch(/^[+-]?\d+\.\d{6}$/);
    return BigInt(text.replace(/[+.]/g, ""));
  };
  return rows.filter(({ times }) => times.length > 0).map((row) => ({ ...row, times: row.times.map(ns) }));
}

const sumOf = (rows: readonly Shown[], at: number) => rows.reduce((sum, row) => sum + (row.times[at] ?? 0n), 0n);

// Two trainings on a V100, where this machine has their traces; two recordings of the repository.
describe.each([...STEPS, [RUN, RANKS] as const])("the difference of the mean steps of %s → %s", (a, b) => {
  let pair: View;
  beforeAll(async () => {
    pair = await view([a, b]);
  });
  afterAll(() => pair.stop());

  test("what is shown sums: names to their class, classes to the difference, which is that of the steps", async () => {
    const { page, close } = await open(viewer.browser, at(pair.url, "compare"));
    await settled(page);
    const region = page.getByRole("region", { name: "Where the difference comes from" });
    for (const button of await region.locator("tbody button.twist").all()) await button.click();
    const more = region.getByRole("button", { name: /^Show .* more/ });
    while ((await more.count()) > 0) await more.first().click();
    const shown = await accountOf(page);
    const { results } = compare(a, b, "step_breakdown");
    const known = results.filter((row) => row.row !== "class" || row.a_ns !== 0 || row.b_ns !== 0);
    const classes = new Set(known.filter(({ row }) => row === "class").map((row) => row.class));
    const hasNames = (of: unknown) => results.some((row) => row.class === of && row.name !== null);
    const expected = known.filter((row) => row.row !== "part" || (classes.has(row.class) && hasNames(row.class)));
    const times = (row: (typeof expected)[number]) =>
      [row.a_ns, row.b_ns, row.change_ns].map((ns) => BigInt(Number(ns)));
    expect(shown.map(({ row, times }) => [row, ...times])).toEqual(expected.map((row) => [row.row, ...times(row)]));
    const total = shown.at(-1);
    const [steps] = compare(a, b, "steps").results;
    expect(total?.times.slice(0, 2)).toEqual([BigInt(Number(steps?.a_mean_ns)), BigInt(Number(steps?.b_mean_ns))]);
    const rowsOf = (row: string) => shown.filter((each) => each.row === row);
    for (const at of [0, 1, 2]) expect(sumOf(rowsOf("class"), at)).toBe(total?.times[at]);
    shown.forEach(({ row, times }, nth) => {
      expect((times[1] ?? 0n) - (times[0] ?? 0n)).toBe(times[2]);
      if (row !== "class") return;
      const rest = shown.slice(nth + 1);
      const parts = rest.slice(
        0,
        rest.findIndex((next) => next.row !== "part"),
      );
      if (parts.length > 0) for (const at of [0, 1, 2]) expect(sumOf(parts, at)).toBe(times[at]);
    });
    expect(rowsOf("part").length).toBeGreaterThan(rowsOf("class").length);
    expect(await violations(page)).toEqual([]);
    await close();
  });

  test("both mean steps are bars, and the largest changes with all others sum to the difference", async () => {
    const { page, close } = await open(viewer.browser, at(pair.url, "compare"));
    await settled(page);
    const { results } = compare(a, b, "step_breakdown");
    const total = results.find(({ row }) => row === "total");
    const bars = page.getByRole("img", { name: /^The mean step (before|now)/ });
    expect(await bars.count()).toBe(2);
    for (const [nth, side] of (["a_ns", "b_ns"] as const).entries()) {
      const titles = await bars.nth(nth).locator("title").allTextContents();
      const drawn = titles.map((title) => Number(/\((\d+) ns\)$/.exec(title)?.[1]));
      expect(drawn.reduce((sum, ns) => sum + ns, 0)).toBe(total?.[side]);
      const classes = results.filter((row) => row.row === "class" && Number(row[side]) > 0);
      expect(drawn.length).toBe(classes.length);
    }
    const table = page.getByRole("table", { name: "What explains the difference" });
    const changes = await table
      .locator("tbody tr td:nth-last-child(2) .value")
      .evaluateAll((all) => all.map((each) => Number((each as HTMLElement).title.replace(/ ns$/, ""))));
    expect(changes.length).toBe(9);
    expect(changes.reduce((sum, ns) => sum + ns, 0)).toBe(total?.change_ns);
    const parts = results.filter((row) => row.row === "part").map((row) => Math.abs(Number(row.change_ns)));
    expect(changes.slice(0, 8).map(Math.abs)).toEqual(parts.sort((one, other) => other - one).slice(0, 8));
    await close();
  });

  test("classes are opened with keys, and the link keeps what is open", async () => {
    const { page, close } = await open(viewer.browser, at(pair.url, "compare"));
    await settled(page);
    const first = page.getByRole("region", { name: "Where the difference comes from" }).locator("button.twist").first();
    const before = (await accountOf(page)).length;
    await first.focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/open=/);
    const opened = await accountOf(page);
    expect(opened.length).toBeGreaterThan(before);
    const other = await open(viewer.browser, at(pair.url, new URL(page.url()).hash.slice(1)));
    await settled(other.page);
    expect(await accountOf(other.page)).toEqual(opened);
    await other.close();
    await page.keyboard.press("Enter");
    await page.waitForURL((url) => !url.hash.includes("open="));
    expect((await accountOf(page)).length).toBe(before);
    await close();
  });
});

test("without a complete step in one of the two there is no difference of steps", async () => {
  const cut = join(folder, "cut.json");
  writeFileSync(cut, JSON.stringify({ schemaVersion: 1, traceEvents: [] }));
  const other = await view([before, cut]);
  const { page, close } = await open(viewer.browser, at(other.url, "compare"));
  await settled(page);
  const { results } = compare(before, cut, "step_breakdown");
  expect(results.at(-1)?.b_ns).toBeNull();
  const region = page.getByRole("region", { name: "Where the difference comes from" });
  expect(await region.locator(".notice").textContent()).toContain("no complete step");
  await close();
  await other.stop();
});

// Any two inputs can be put side by side, whatever they have.
describe.each(INPUTS.map((input, at) => [input, INPUTS[at + 1] ?? INPUTS[0] ?? ""] as const))("%s → %s", (a, b) => {
  test("the page has the command's rows", async () => {
    const both = await view([a, b]);
    const { page, close } = await open(viewer.browser, at(both.url, `compare?b=${a === b ? 0 : 1}`));
    await settled(page);
    expect(await verdictOf(page)).toBe(compare(a, b, "steps").results[0]?.says);
    await expectTable(page, "Operators", "operators", a, b);
    if (await page.getByRole("grid", { name: "Kernels", exact: true }).count()) {
      await expectTable(page, "Kernels", "kernels", a, b);
    }
    expect(await violations(page)).toEqual([]);
    await close();
    await both.stop();
  });
});

test("two ranks of one run are two sides", async () => {
  const one = await view([RUN, before]);
  const { page, close } = await open(viewer.browser, at(one.url, "compare?b=0&rank=0&b-rank=0"));
  await settled(page);
  const said = page.getByRole("region", { name: "Steps" });
  const [steps] = compare(RUN, RUN, "steps", "--rank-a", "0", "--rank-b", "0").results;
  expect(await verdictOf(page)).toBe(steps?.says);
  expect(await said.locator("tbody th").allTextContents()).toEqual(["before: gpt-cpu, rank 0", "now: gpt-cpu, rank 0"]);
  await close();
  await one.stop();
});
