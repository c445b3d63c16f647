import { expect, test } from "vitest";
import { formatRoute, parseRoute, withParams } from "../../state/url";
import { askedAt } from "./address";

test("a query is in the address as it was written, and comes back from it", () => {
  const sql = "SELECT name, count(*) AS n\nFROM slice -- 100 % & more\nWHERE name LIKE 'a+b#?=é%'";
  const route = withParams(parseRoute("#query?run=0"), { sql, plot: "line", x: "name", y: "n", limit: "10000" });
  const asked = askedAt(parseRoute(formatRoute(route)));
  expect(asked).toEqual({ sql, limit: 10_000, shownAs: "line", x: "name", y: "n", sort: "" });
});

test("what makes no sense is as unasked", () => {
  const unasked = { sql: "", limit: 1_000, shownAs: "table", x: undefined, y: undefined, sort: "" };
  expect(askedAt(parseRoute("#query"))).toEqual(unasked);
  expect(askedAt(parseRoute("#query?sql=&limit=7&plot=pie&limit=x"))).toEqual(unasked);
});
