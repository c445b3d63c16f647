// The place as a signal. Whoever changes it changes the address, and the other way round.

import { computed, signal } from "@preact/signals";
import type { Query } from "../api/paths";
import { type Changes, changed, formatPlace, onPage, type Place, paramOf, paramsOf, parsePlace } from "./url";

const current = signal<Place>(parsePlace(globalThis.location?.hash ?? ""));

/** Where the person is. */
export const place = computed(() => current.value);

/** Follows the address: Back, Forward, and what is typed into it. */
export function followAddress(): void {
  addEventListener("popstate", () => {
    current.value = parsePlace(location.hash);
  });
}

/** Goes to a place. `replace` leaves no step for Back: for what changes while a person types or drags. */
export function go(next: Place, { replace = false } = {}): void {
  const address = formatPlace(next);
  if (address === formatPlace(current.value)) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  current.value = next;
}

/** Changes what is chosen on this page. */
export function choose(changes: Changes, options?: { replace?: boolean }): void {
  go(changed(current.value, changes), options);
}

/** The address of this place with other choices: for links. */
export const hrefWith = (changes: Changes): string => formatPlace(changed(current.value, changes));

/** The address of another page, on which the same part of the same run is shown. */
export const hrefOf = (page: string, changes?: Changes): string => formatPlace(onPage(current.value, page, changes));

/** What is chosen under `name`; reading it in a component follows it. */
export const chosen = (name: string): string | undefined => paramOf(current.value, name);

/** Everything that is chosen under `name`. */
export const allChosen = (name: string): string[] => paramsOf(current.value, name);

/** The time window that every page is of, when one was chosen: `window=START-END`, in ns. */
export const timeWindow = computed(() => {
  const [, start, end] = /^(\d{1,19})-(\d{1,19})$/.exec(chosen("window") ?? "") ?? [];
  return start !== undefined && end !== undefined ? { start_ns: start, end_ns: end } : null;
});

/** Where nothing is: in a part of the run, which parameters of a request name, or in all of it. */
export const whereWords = (part: Query): string =>
  part.some(([, value]) => value !== null && value !== undefined) ? "in the selected part of the run" : "in this run";

/** The part of the run that was chosen, as parameters of a request. */
export const selection = computed(
  () =>
    [
      ["rank", chosen("rank")],
      ["step", chosen("step")],
      ["start_ns", timeWindow.value?.start_ns],
      ["end_ns", timeWindow.value?.end_ns],
    ] as const,
);
