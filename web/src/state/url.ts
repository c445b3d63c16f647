// The route: the page and everything chosen on it, in the part of the address behind `#`. The server never sees
// it, and Back goes through it.

/** A page with what is chosen on it. A name may have several values. */
export interface Route {
  readonly page: string;
  readonly params: readonly (readonly [name: string, value: string])[];
}

/** What stays chosen on the way from page to page: of everything that is shown, the part that a person wants to see. */
export const KEPT = ["run", "rank", "step", "window"] as const;

/** Where an address begins that names no page. */
export const FIRST_PAGE = "overview";

/** `#operators?rank=0&sort=count` as a route. Any text is some route. */
export function parseRoute(hash: string): Route {
  const text = hash.startsWith("#") ? hash.slice(1) : hash;
  const at = text.indexOf("?");
  const page = decode(at < 0 ? text : text.slice(0, at));
  const params = at < 0 ? [] : [...new URLSearchParams(text.slice(at + 1))];
  return { page: page || FIRST_PAGE, params };
}

/** The address of a route; `parseRoute` of it is the route. */
export function formatRoute(route: Route): string {
  const params = new URLSearchParams(route.params.map(([name, value]) => [name, value])).toString();
  const page = encodeURIComponent(route.page);
  return params ? `#${page}?${params}` : `#${page}`;
}

/** The first value of `name`. */
export function paramOf(route: Route, name: string): string | undefined {
  return route.params.find(([known]) => known === name)?.[1];
}

/** All values of `name`. */
export function paramsOf(route: Route, name: string): string[] {
  return route.params.filter(([known]) => known === name).map(([, value]) => value);
}

/** What to change of a route: a value, several, or none. */
export type Changes = Readonly<Record<string, string | readonly string[] | null | undefined>>;

/** The route with some values changed; the others keep their order. */
export function withParams(route: Route, changes: Changes): Route {
  const kept = route.params.filter(([name]) => !Object.hasOwn(changes, name));
  const added = Object.entries(changes).flatMap(([name, value]) => {
    const values = value === null || value === undefined ? [] : typeof value === "string" ? [value] : value;
    return values.map((value) => [name, value] as const);
  });
  return { page: route.page, params: [...kept, ...added] };
}

/** Another page, on which the same part of the same run is shown. */
export function onPage(route: Route, page: string, changes: Changes = {}): Route {
  const kept = route.params.filter(([name]) => (KEPT as readonly string[]).includes(name));
  return withParams({ page, params: kept }, changes);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
