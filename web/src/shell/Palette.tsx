import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "../api/client";
import { runPath, withQuery } from "../api/paths";
import type { RunDetail } from "../api/types";
import type { Found } from "../canvas/model";
import { Dialog } from "../components/Dialog";
import { timelineSearch } from "../components/links";
import { analysisTitle } from "../components/vocabulary";
import { Words } from "../components/Words";
import { clipped } from "../format/printable";
import { formatCount, formatNs } from "../format/units";
import { PAGES } from "../pages/registry";
import { shownRank } from "../state/rank";
import { hrefOf, hrefWith, route, stepChanges } from "../state/route";
import { analyses, detail, runId, runs } from "../state/runs";
import { placeOfNumber } from "../state/steps";
import { isPaletteOpen } from "./keys";
import { type Destination, found } from "./search";

/** Letters from which on names are searched for, how many are shown, and how long a person who types is waited for. */
const SEARCHED = 2;
const NAMES = 12;
const PAUSE_MS = 150;

/** Pages, tables, runs, steps and names by what is typed; Enter goes to the first. */
export function Palette() {
  const [typed, setTyped] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const names = useNames(typed);
  const close = () => {
    isPaletteOpen.value = false;
    setTyped("");
  };
  const known = detail.value;
  const pages: Destination[] = PAGES.map((page) => ({
    title: page.title,
    about: (known && page.missing(known)) ?? page.about,
    href: hrefOf(page.id),
  }));
  const tables = [...analyses.value.values()].map((analysis) => ({
    title: analysisTitle(analysis.name),
    about: analysis.definition,
    href: hrefOf("tables", { analysis: analysis.name }),
  }));
  const others = (runs.value ?? []).length > 1 ? (runs.value ?? []) : [];
  const toRuns = others.map((run) => ({
    title: run.name,
    about: `Run: ${run.path}`,
    href: hrefOf("overview", { run: run.key, rank: null, step: null, window: null }),
  }));
  const listed = (typed: string) => [
    ...stepsOf(typed, known),
    ...found([...pages, ...tables, ...toRuns], typed),
    ...names,
  ];
  const shown = isPaletteOpen.value ? listed(typed) : [];
  // The links are of this place: reading it here makes them follow it.
  void route.value;
  const onSubmit = (event: Event) => {
    event.preventDefault();
    // What is typed may be newer than what is shown.
    const [first] = listed(field.current?.value ?? typed);
    if (first) location.assign(first.href);
    close();
  };
  return (
    <Dialog title="Go to" isOpen={isPaletteOpen.value} onClose={close}>
      <form onSubmit={onSubmit}>
        <input
          ref={field}
          type="search"
          aria-label="Page, table, run, step, or the name of an operator, kernel or module"
          placeholder="Page, table, run, step, or a name"
          autofocus
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </form>
      <ul class="destinations">
        {shown.map((destination) => (
          <li key={destination.href}>
            <a href={destination.href} onClick={close}>
              <strong>{destination.title}</strong>{" "}
              <span class="dim">
                <Words text={destination.about} />
              </span>
            </a>
          </li>
        ))}
      </ul>
      <p role="status" class="dim">
        {shown.length === 0 ? "Nothing has this in its name." : ""}
      </p>
    </Dialog>
  );
}

/** A number that is typed is a step. */
function stepsOf(typed: string, known: RunDetail | null): Destination[] {
  const [, number] = /^\s*(?:step\s*)?(\d{1,18})\s*$/i.exec(typed) ?? [];
  if (number === undefined || !known || placeOfNumber(known.steps, number) < 0) return [];
  return [{ title: `Step ${number}`, about: "Every page, filtered to this step", href: hrefWith(stepChanges(number)) }];
}

/** What the search of the timeline finds: operators, kernels, modules and everything else by its name. */
function useNames(typed: string): readonly Destination[] {
  const [names, setNames] = useState<readonly Destination[]>([]);
  const text = typed.trim();
  useEffect(() => {
    setNames([]);
    if (text.length < SEARCHED || !detail.value) return;
    const abort = new AbortController();
    const path = withQuery(runPath(runId.value, "search"), [
      ["q", text],
      ["limit", NAMES],
      ["of_rank", shownRank.value],
    ]);
    const destination = ({ name, slices, total_ns }: Found["names"][number]): Destination => ({
      title: clipped(name, 200),
      about: `${formatCount(slices)} on the timeline, ${formatNs(total_ns)}`,
      href: timelineSearch(name),
    });
    const timer = setTimeout(() => {
      ask<Found>(path, abort.signal).then(
        ({ names }) => setNames(names.map(destination)),
        // Pages and tables are found all the same.
        () => {},
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  return names;
}
