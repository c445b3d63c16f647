import { expect, test } from "vitest";
import { formatRoute, onPage, paramOf, paramsOf, parseRoute, type Route, withParams } from "./url";

const HOSTILE = [
  "",
  " ",
  "+",
  "a=b&c=d",
  "#?&=%",
  "%00%zz",
  "<img src=x onerror=alert(1)>",
  "javascript:alert(1)",
  "../../etc",
  "日本語 🦀",
  "\u0000\n\r\t\u2028",
  "void f<int, 4>(float*, std::pair<long, long> const&)::{lambda()#1}",
  "__proto__",
  "constructor",
];

test("any route comes back from its address", () => {
  for (const page of HOSTILE.filter((page) => page !== "")) {
    const params = HOSTILE.flatMap((name) => HOSTILE.map((value) => [name, value] as const));
    const route: Route = { page, params };
    expect(parseRoute(formatRoute(route))).toEqual(route);
  }
});

test("any address is a route, and its address leads there again", () => {
  for (const hash of ["", "#", "#?", "#%", "#%zz?%=%", "#a?b", "#a?b=c&b=d", ...HOSTILE]) {
    const route = parseRoute(hash);
    expect(route.page).not.toBe("");
    expect(parseRoute(formatRoute(route))).toEqual(route);
  }
});

test("values are changed, added and taken away by name", () => {
  const route = parseRoute("#operators?rank=1&where=a&where=b&sort=count");
  const next = withParams(route, { where: ["c", "d"], sort: null, q: "mm" });
  expect(paramsOf(next, "where")).toEqual(["c", "d"]);
  expect(paramOf(next, "sort")).toBeUndefined();
  expect(formatRoute(next)).toBe("#operators?rank=1&where=c&where=d&q=mm");
});

test("another page keeps the part of the run that is shown, and nothing else", () => {
  const route = parseRoute("#operators?run=1&rank=2&step=3&window=4-5&sort=count&q=mm");
  expect(formatRoute(onPage(route, "kernels", { sort: "mean_ns" }))).toBe(
    "#kernels?run=1&rank=2&step=3&window=4-5&sort=mean_ns",
  );
});
