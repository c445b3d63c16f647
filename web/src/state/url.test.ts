import { expect, test } from "vitest";
import { changed, formatPlace, onPage, type Place, paramOf, paramsOf, parsePlace } from "./url";

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

test("any place comes back from its address", () => {
  for (const page of HOSTILE.filter((page) => page !== "")) {
    const params = HOSTILE.flatMap((name) => HOSTILE.map((value) => [name, value] as const));
    const place: Place = { page, params };
    expect(parsePlace(formatPlace(place))).toEqual(place);
  }
});

test("any address is a place, and its address leads there again", () => {
  for (const hash of ["", "#", "#?", "#%", "#%zz?%=%", "#a?b", "#a?b=c&b=d", ...HOSTILE]) {
    const place = parsePlace(hash);
    expect(place.page).not.toBe("");
    expect(parsePlace(formatPlace(place))).toEqual(place);
  }
});

test("values are changed, added and taken away by name", () => {
  const place = parsePlace("#operators?rank=1&where=a&where=b&sort=count");
  const next = changed(place, { where: ["c", "d"], sort: null, q: "mm" });
  expect(paramsOf(next, "where")).toEqual(["c", "d"]);
  expect(paramOf(next, "sort")).toBeUndefined();
  expect(formatPlace(next)).toBe("#operators?rank=1&where=c&where=d&q=mm");
});

test("another page keeps the part of the run that is shown, and nothing else", () => {
  const place = parsePlace("#operators?run=1&rank=2&step=3&window=4-5&sort=count&q=mm");
  expect(formatPlace(onPage(place, "kernels", { sort: "mean_ns" }))).toBe(
    "#kernels?run=1&rank=2&step=3&window=4-5&sort=mean_ns",
  );
});
