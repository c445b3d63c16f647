// A run of many ranks whose events do not fit into memory: its timeline has the collectives of all, or all events of one.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import type { Found, NextHit, TimelineInfo } from "../../src/canvas/model";
import { at, goTo, open, pagesOf, settled } from "./browser";
import { RANKS } from "./inputs";
import { served } from "./served";
import { simulate, view } from "./stepscope";
import { asked, canvas, rowsOf, selected, title } from "./timeline_page";
import { viewerOf } from "./viewer";
import { violations } from "./violations";

const COUNT = 8;
const ONLY = "Only collectives and device work of all ranks are shown";
/** More than the events of one rank take, less than those of all. */
const MEMORY = "60000";
const FILE = "train.py";
const CODE = "def step():\n    return forward()\n";

let folder: string;
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const viewer = viewerOf(async () => {
  folder = mkdtempSync(join(tmpdir(), "of-rank-"));
  // A folder in a folder is one run.
  const job = join(folder, "job");
  simulate(job, COUNT, 12, "ddp");
  for (let rank = 0; rank < COUNT; rank++) withStacks(join(job, `rank${rank}.json`));
  mkdirSync(join(folder, "code"));
  writeFileSync(join(folder, "code", FILE), CODE);
  return view([job], ["--memory", MEMORY, "--source", join(folder, "code")]);
});

interface Event {
  readonly ph: string;
  readonly cat?: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
}

/** Everything on the host is called from a line of `FILE`, as torch.profiler writes it. */
function withStacks(path: string): void {
  const trace: { traceEvents: Event[] } = JSON.parse(readFileSync(path, "utf8"));
  const op = trace.traceEvents.find(({ cat }) => cat === "cpu_op");
  if (!op) throw new Error("the trace has no operator");
  const host = trace.traceEvents.filter(({ ph, pid, tid }) => ph === "X" && pid === op.pid && tid === op.tid);
  const ts = Math.min(...host.map(({ ts }) => ts)) - 1;
  const dur = Math.max(...host.map(({ ts, dur }) => ts + dur)) + 1 - ts;
  const args = { "Python id": 1, "Python parent id": null };
  const { pid, tid } = op;
  const call = { ph: "X", cat: "python_function", name: `${FILE}(1): step`, pid, tid, ts, dur, args };
  writeFileSync(path, JSON.stringify({ ...trace, traceEvents: [...trace.traceEvents, call] }));
}

/** What the page asks about the run, from now on; `seen` forgets it. */
function requestsOf(page: Page) {
  let all: URL[] = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.pathname.startsWith("/api/runs/0/")) all.push(url);
  });
  return () => {
    const seen = all;
    all = [];
    return seen;
  };
}

const OF_TIMELINE = /\/(timeline|tiles|counters|search|sums|slices)(\/|$)/;
const rankOf = (url: URL) => url.searchParams.get("of_rank");
/** The ranks whose timeline was asked about; null for the one of all ranks. */
const timelinesIn = (requests: readonly URL[]) => {
  const ofTimeline = requests.filter(({ pathname }) => OF_TIMELINE.test(pathname));
  return [...new Set(ofTimeline.map(rankOf))];
};
/** Those since the rows of the timeline of `rank` were asked for. */
const timelinesSince = (requests: readonly URL[], rank: string | null) => {
  const first = requests.findIndex((url) => url.pathname.endsWith("/timeline") && rankOf(url) === rank);
  return first < 0 ? [] : timelinesIn(requests.slice(first));
};
/** What the server refuses the page, once each; the browser logs each of them, which `isRefusal` finds. */
function refusalsOf(page: Page): Set<string> {
  const all = new Set<string>();
  page.on("response", (response) => {
    const { pathname, search } = new URL(response.url());
    if (response.status() === 400) all.add(pathname.replace("/api/runs/0/", "") + search);
  });
  return all;
}
const isRefusal = (trouble: string) => trouble.includes("400 (Bad Request)");

/** The file that a link leads to. */
async function downloaded(page: Page, link: string): Promise<string> {
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: link }).click()]);
  return readFileSync(await file.path(), "utf8");
}

/** A slice of a rank that is no collective. */
async function someOperator(rank: number) {
  const query = `q=optimizer&after_ns=0&of_rank=${rank}`;
  const { hit } = (await (await asked(viewer.server, `api/runs/0/search/next?${query}`)).json()) as NextHit;
  if (!hit) throw new Error("the rank has no operator");
  return hit;
}
const pick = (page: Page) => page.getByLabel("choose a rank to see all of its events");
const exports = (page: Page) => page.getByText("Export", { exact: true });
const header = (page: Page) => page.locator("header").getByLabel("Rank");

test("without a rank the collectives of all are shown, and the page says how to see more", async () => {
  const { page, close } = await open(viewer.browser, at(viewer.server.url, "overview"));
  const seen = requestsOf(page);
  await settled(page);
  await goTo(page, "timeline");
  await page.getByText(ONLY).waitFor();
  expect(timelinesIn(seen())).toEqual([null]);
  await exports(page).click();
  await page.getByText("Choose a rank to export its events").waitFor();
  expect(await page.getByRole("link", { name: "Chrome JSON" }).count()).toBe(0);
  await page.keyboard.press("Escape");
  const info = (await (await asked(viewer.server, "api/runs/0/timeline")).json()) as TimelineInfo;
  expect(new Set(rowsOf(info.groups).map(({ rank }) => rank)).size).toBe(COUNT);
  expect(await violations(page)).toEqual([]);
  await pick(page).selectOption("2");
  await page.getByText(ONLY).waitFor({ state: "detached" });
  await settled(page);
  expect(new URL(page.url()).hash).toBe("#timeline?rank=2");
  expect(await header(page).inputValue()).toBe("2");
  expect(timelinesSince(seen(), "2")).toEqual(["2"]);
  expect(await violations(page)).toEqual([]);
  await exports(page).click();
  await page.getByText(/^Of what is shown, .* of rank 2:$/).waitFor();
  const { distributedInfo, traceEvents } = JSON.parse(await downloaded(page, "Chrome JSON"));
  const hasOperators = traceEvents.some(({ cat }: Event) => cat === "cpu_op");
  expect([distributedInfo.rank, hasOperators]).toEqual([2, true]);
  await close();
});

test("slices and hits of one rank are left when another is chosen", async () => {
  const { page, close } = await viewer.show("overview");
  const op = await someOperator(2);
  const link = `timeline?rank=2&q=optimizer&at=${op.start_ns}&at-rank=2&at-name=${encodeURIComponent(op.name)}`;
  await goTo(page, link);
  await selected(page, op.name);
  const seen = requestsOf(page);
  const hits = async (rank: number) => {
    const found = (await (await asked(viewer.server, `api/runs/0/search?q=optimizer&of_rank=${rank}`)).json()) as Found;
    await page
      .locator(".timeline-search output")
      .filter({ hasText: String(found.slices) })
      .waitFor();
  };
  await hits(2);
  await page.getByRole("tab", { name: "List" }).click();
  await page.locator(".timeline-rows tbody tr").first().waitFor();
  seen();
  await header(page).selectOption("3");
  await hits(3);
  await settled(page);
  // The list stays open, and is of the other rank.
  expect(await page.getByRole("tab", { name: "List" }).getAttribute("aria-selected")).toBe("true");
  await page.locator(".timeline-rows tbody tr").first().waitFor();
  expect(timelinesSince(seen(), "3")).toEqual(["3"]);
  const place = () => new URLSearchParams(new URL(page.url()).hash.split("?")[1]);
  expect([place().get("rank"), place().get("at")]).toEqual(["3", null]);
  await page.getByRole("tab", { name: "Slice" }).click();
  expect(await title(page).count()).toBe(0);
  await page.goBack();
  await selected(page, op.name);
  expect(timelinesSince(seen(), "2")).toEqual(["2"]);
  await header(page).selectOption("");
  await page.getByText(ONLY).waitFor();
  await settled(page);
  expect([place().get("rank"), place().get("at")]).toEqual([null, null]);
  expect(timelinesSince(seen(), null)).toEqual([null]);
  await close();
});

test("the page says what is read, drops what comes too late, and shows an error with its hint", async () => {
  const { page, close } = await viewer.show("overview");
  const refusals = refusalsOf(page);
  const late: (() => void)[] = [];
  await page.route(/\/timeline\?of_rank=4$/, async (route) => {
    await new Promise<void>((resolve) => late.push(resolve));
    await route.continue().catch(() => {});
  });
  await page.evaluate(() => {
    location.hash = "timeline?rank=4";
  });
  await page.getByText("Reading all events of rank 4…").waitFor();
  await header(page).selectOption("5");
  await canvas(page).waitFor();
  for (const answer of late) answer();
  await settled(page);
  const seen = requestsOf(page);
  await goTo(page, "timeline?rank=5&view=0-1000000");
  expect(timelinesIn(seen())).toEqual(["5"]);
  const error = {
    what: "all events of 1 file would take about 9 GiB of memory",
    hint: "allow more memory: --memory 10GiB",
  };
  await page.route(/\/timeline\?of_rank=6$/, (route) => route.fulfill({ status: 400, json: { error } }));
  await header(page).selectOption("6");
  const alert = page.getByRole("alert");
  await alert.getByText(error.what).waitFor();
  await alert.getByText(error.hint).waitFor();
  expect(await canvas(page).count()).toBe(0);
  await goTo(page, "timeline?rank=99");
  await alert.getByText("rank 99 is not in this run").waitFor();
  await alert.getByText("its ranks are 0, 1, 2").waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  expect([...refusals]).toEqual(["timeline?of_rank=6", "timeline?of_rank=99"]);
  await close(isRefusal);
});

test("a link leads to the timeline of its rank", async () => {
  const { page, close } = await viewer.show("distributed?rank=3&step=2");
  const link = page.getByRole("region", { name: "Steps of ranks" }).getByRole("link", { name: "On the timeline" });
  expect(await link.getAttribute("href")).toMatch(/^#timeline\?step=2&rank=3&view=\d+-\d+&range=\d+-\d+$/);
  await link.click();
  await canvas(page).waitFor();
  expect(await page.getByText(ONLY).count()).toBe(0);
  // A link from where all events fit into memory names the rank only with the slice.
  const op = await someOperator(1);
  await goTo(page, `timeline?at=${op.start_ns}&at-rank=1&at-name=${encodeURIComponent(op.name)}`);
  await selected(page, op.name);
  expect(await header(page).inputValue()).toBe("1");
  // A collective is there without its rank.
  const { hit } = (await (await asked(viewer.server, "api/runs/0/search/next?q=nccl&after_ns=0")).json()) as NextHit;
  if (!hit) throw new Error("there is no collective");
  await goTo(page, `timeline?at=${hit.start_ns}&at-rank=${hit.rank}&at-name=${encodeURIComponent(hit.name)}`);
  await selected(page, hit.name);
  await page.getByText(ONLY).waitFor();
  await close();
});

test("every page is of the rank that is chosen, and shows which it is", async () => {
  const { page, close } = await viewer.show("overview");
  const seen = requestsOf(page);
  const pages = await pagesOf(page);
  expect(pages.length).toBeGreaterThan(6);
  // The timelines side by side come last: they ask for what is around them when everything is shown.
  for (const name of [...pages.filter((name) => name !== "compare"), "compare"]) {
    seen();
    await goTo(page, `${name}?rank=3`);
    expect(await header(page).inputValue(), name).toBe("3");
    expect(await page.getByRole("alert").count(), name).toBe(0);
    const requests = seen();
    const results = requests.filter(
      ({ pathname, search }) => /\/analyses\//.test(pathname) && !/findings/.test(pathname + search),
    );
    const others = results.filter((url) => url.searchParams.get("rank") !== "3");
    // Rank stands beside rank there: it is where one is chosen.
    if (name === "distributed") expect(others.length).toBeLessThan(results.length);
    else expect(others.map(String), name).toEqual([]);
    expect(
      timelinesIn(requests).filter((rank) => rank !== "3"),
      name,
    ).toEqual(name === "compare" ? ["0"] : []);
  }
  await close();
});

test("code is shown of the rank that is chosen", async () => {
  const { page, close } = await open(viewer.browser, at(viewer.server.url, "source?rank=3"));
  const code = page.getByRole("table", { name: `Lines of ${FILE}` });
  await code.waitFor();
  expect((await code.locator("tbody code").allTextContents()).join("\n")).toBe(CODE.trimEnd());
  await close();
});

test("the report is a page of what fits into memory, and says what it lacks", async () => {
  const { page, close } = await viewer.show("overview");
  const report = await downloaded(page, "This report as one HTML page");
  expect(report).toContain("Top kernels");
  expect(report.split("<h2>Not on this page</h2>")[1]).toContain("all events of 8 files would take about");
  await close();
});

test("a table that needs more memory than allowed says so, and what to do", async () => {
  const { page, close } = await open(viewer.browser, at(viewer.server.url, "tables?analysis=critical_path_ranks"));
  const refusals = refusalsOf(page);
  const alert = page.getByRole("alert");
  await alert
    .getByText(/^all events of 8 files would take about .* of memory, more than the 58.6 KiB allowed$/)
    .waitFor();
  await alert.getByText("choose fewer ranks, or start stepscope view with --memory 1GiB").waitFor();
  // Another table fits; so may this one when it is asked for again.
  const path = /\/analyses\/critical_path_ranks\?/;
  await page.route(path, async (route) => {
    await route.continue({ url: route.request().url().replace("critical_path_ranks", "critical_path") });
  });
  await alert.getByRole("button", { name: "Try again" }).click();
  await alert.waitFor({ state: "detached" });
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await goTo(page, "tables?analysis=memory_timeline");
  expect(await alert.count()).toBe(0);
  expect([...refusals].map((path) => path.replace(/\?.*/, ""))).toEqual(["analyses/critical_path_ranks"]);
  await close(isRefusal);
});

test("where all events fit into memory the timeline is of all ranks", async () => {
  const whole = await served([RANKS]);
  const { page, close } = await open(viewer.browser, at(whole.url, "overview"));
  await settled(page);
  const seen = requestsOf(page);
  await goTo(page, "timeline?rank=1&q=optimizer");
  await page.locator(".timeline-search output").waitFor();
  expect(await page.getByText(ONLY).count()).toBe(0);
  expect(timelinesIn(seen())).toEqual([null]);
  await close();
  await whole.stop();
});
