// The address as a signal: the page, and everything that the user chose on it. Pages write it with `setParams` and show
// what it says.

import { computed, signal } from "@preact/signals";
import type { Query } from "../api/paths";
import { type Changes, formatRoute, onPage, paramOf, paramsOf, parseRoute, type Route, withParams } from "./url";

const current = signal<Route>(parseRoute(globalThis.location?.hash ?? ""));

const entry = signal<Route>(current.peek());

/** Where the user is. */
export const route = computed(() => current.value);

/** Where the user was when this step of Back began: the address before it was replaced. */
export const entered = computed(() => entry.value);

/** Follows the address: Back, Forward, and what is typed into it. */
export function followAddress(): void {
  addEventListener("popstate", () => {
    entry.value = parseRoute(location.hash);
    current.value = entry.peek();
  });
}

/** Changes what is chosen on this page. `replace` leaves no step for Back: for what changes while a user types or drags. */
export function setParams(changes: Changes, { replace = false } = {}): void {
  const next = withParams(current.peek(), changes);
  const address = formatRoute(next);
  if (address === formatRoute(current.peek())) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  if (!replace) entry.value = next;
  current.value = next;
}

/** What choosing a step changes: the timeline leaves the window that it shows, and goes there. */
export const stepChanges = (step: string | null): Changes =>
  step !== null && current.value.page === "timeline" ? { step, view: null } : { step };

/** The address of this page with other choices: for links. */
export const hrefWith = (changes: Changes): string => formatRoute(withParams(current.value, changes));

/** The address of another page, on which the same part of the same run is shown. */
export const hrefOf = (page: string, changes?: Changes): string => formatRoute(onPage(current.value, page, changes));

/** What is chosen under `name`; reading it in a component follows it. */
export const param = (name: string): string | undefined => paramOf(current.value, name);

/** Everything that is chosen under `name`. */
export const params = (name: string): string[] => paramsOf(current.value, name);

/** The time window that every page is of, when one was chosen: `window=START-END`, in ns. */
export const timeWindow = computed(() => {
  const [, start, end] = /^(\d{1,19})-(\d{1,19})$/.exec(param("window") ?? "") ?? [];
  return start !== undefined && end !== undefined ? { start_ns: start, end_ns: end } : null;
});

/** Where nothing is: in a part of the run, which parameters of a request name, or in all of it. */
export const whereWords = (part: Query): string =>
  part.some(([, value]) => value !== null && value !== undefined) ? "in the selected part of the run" : "in this run";

/** The part of the run that was chosen, as parameters of a request. */
export const selection = computed(
  () =>
    [
      ["rank", param("rank")],
      ["step", param("step")],
      ["start_ns", timeWindow.value?.start_ns],
      ["end_ns", timeWindow.value?.end_ns],
    ] as const,
);
