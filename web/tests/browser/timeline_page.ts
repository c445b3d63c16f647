// What tests of the timeline ask the server, and where things are on its page.

import type { Page } from "playwright-core";
import type { NextHit, SliceDetails, TimelineGroup, TimelineInfo, TimelineRow } from "../../src/canvas/model";
import { TRACE } from "./inputs";
import { analyze, type View } from "./stepscope";

/** Asks the server itself, once the run is there. */
export async function asked(server: View, path: string): Promise<Response> {
  const url = new URL(path, server.url);
  url.searchParams.set("token", new URL(server.url).searchParams.get("token") ?? "");
  for (;;) {
    const response = await fetch(url);
    if (response.status !== 409) return response;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

export const rowsOf = (groups: readonly TimelineGroup[]): TimelineRow[] =>
  groups.flatMap((group) => [...group.rows, ...rowsOf(group.groups)]);

export const kernels = () =>
  analyze("kernels", TRACE).results.map(({ name, count, total_ns }) => ({ name: String(name), count, total_ns }));

/** A kernel whose name no other slice has in its own: searching for it finds nothing else. */
export function someKernel() {
  const all = kernels();
  const one = all.find(({ name }) => all.filter((other) => other.name.includes(name)).length === 1 && name.length > 20);
  if (!one) throw new Error("the trace has no such kernel");
  return one;
}

/** A kernel of a name like that, its launch and its operator. */
export async function launchedKernel(server: View): Promise<SliceDetails> {
  const { span } = (await (await asked(server, "api/runs/0/timeline")).json()) as TimelineInfo;
  // The last of each: what runs first may have been launched before anything was recorded.
  for (const { name } of kernels()) {
    const query = `q=${encodeURIComponent(name)}&before_ns=${span.end_ns}`;
    const { hit } = (await (await asked(server, `api/runs/0/search/next?${query}`)).json()) as NextHit;
    if (!hit) continue;
    const details = (await (await asked(server, `api/runs/0/slices/${hit.id}`)).json()) as SliceDetails;
    if (details.launch && details.op) return details;
  }
  throw new Error("the trace has no kernel with a launch and an operator");
}

export const title = (page: Page) => page.locator(".timeline-title code");
export const canvas = (page: Page) => page.getByRole("application", { name: /^Timeline/ });

/** Waits until a slice of this name is selected. */
export const selected = (page: Page, name: string) => title(page).filter({ hasText: name }).waitFor();
