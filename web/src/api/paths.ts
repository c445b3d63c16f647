// Addresses of the HTTP interface. All are relative, so that they work below any path of a proxy.

/** Names and values in the order given; those without a value are left out. */
export type Query = readonly (readonly [string, string | number | bigint | null | undefined])[];

/** `path?name=value…`. */
export function withQuery(path: string, query: Query): string {
  const params = new URLSearchParams();
  for (const [name, value] of query) {
    if (value !== null && value !== undefined && value !== "") params.append(name, String(value));
  }
  const text = params.toString();
  return text ? `${path}?${text}` : path;
}

/** Where a run's answers are. */
export function runPath(run: number, rest = ""): string {
  return `api/runs/${run}${rest ? `/${rest}` : ""}`;
}
