// What is asked, as it stands in the address: the query that was run last, and how its result is shown.

import { paramOf, type Route } from "../../state/url";

/** The most rows that are asked for, as choices. */
export const LIMITS = [1_000, 10_000, 100_000] as const;

/** How a result is shown. */
export const SHOWN_AS = [
  ["table", "table"],
  ["bars", "bars"],
  ["line", "line"],
  ["scatter", "scatter"],
] as const;
export type ShownAs = (typeof SHOWN_AS)[number][0];

export interface Asked {
  /** The query; empty where none was run. */
  readonly sql: string;
  readonly limit: number;
  readonly shownAs: ShownAs;
  /** The columns of a plot, where they were chosen. */
  readonly x: string | undefined;
  readonly y: string | undefined;
  /** The column that orders the rows, with `-` before it for the other way round; empty for the order of the query. */
  readonly sort: string;
}

/** What a route asks; what makes no sense is as unasked. */
export function askedAt(route: Route): Asked {
  const limit = Number(paramOf(route, "limit"));
  const shownAs = paramOf(route, "plot");
  return {
    sql: paramOf(route, "sql") ?? "",
    limit: LIMITS.find((known) => known === limit) ?? LIMITS[0],
    shownAs: SHOWN_AS.find(([known]) => known === shownAs)?.[0] ?? "table",
    x: paramOf(route, "x"),
    y: paramOf(route, "y"),
    sort: paramOf(route, "sort") ?? "",
  };
}
