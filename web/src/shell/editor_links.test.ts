import { expect, test } from "vitest";
import { placeIn } from "./editor_links";

test("a link to a line of source is a place", () => {
  expect(placeIn("#source?run=a&file=a%20b%2Fx.py&line=12")).toEqual({ file: "a b/x.py", line: 12 });
});

test("a link to anything else is none", () => {
  for (const href of [
    "#source?file=x.py",
    "#source?file=x.py&line=0",
    "#source?file=x.py&line=1e3",
    "#source?line=3",
    "#operators?file=x.py&line=3",
    "https://example.org/#source?file=x.py&line=3",
    "",
  ])
    expect(placeIn(href)).toBeNull();
});
