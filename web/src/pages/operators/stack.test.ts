import { expect, test } from "vitest";
import { placesOf } from "./stack";

test("frames with a file are places, each once, the innermost first", () => {
  const stack = "<built-in function linear>;Linear_0;<string>(1): <module>;a (b)/c.py(18): forward;d.py(1): main";
  expect(placesOf(`${stack};a (b)/c.py(18): forward`)).toEqual([
    { file: "a (b)/c.py", line: 18 },
    { file: "d.py", line: 1 },
  ]);
  expect([placesOf(""), placesOf("Linear_0;<string>(1): f")]).toEqual([[], []]);
  expect(placesOf("a.py(3): f(1): g")).toEqual([{ file: "a.py", line: 3 }]);
});
