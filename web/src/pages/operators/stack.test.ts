import { expect, test } from "vitest";
import { ownPlaces, placesOf } from "./stack";

test("frames with a file are places, each once, the innermost first", () => {
  const stack = "<built-in function linear>;Linear_0;<string>(1): <module>;a (b)/c.py(18): forward;d.py(1): main";
  expect(placesOf(`${stack};a (b)/c.py(18): forward`)).toEqual([
    { file: "a (b)/c.py", line: 18 },
    { file: "d.py", line: 1 },
  ]);
  expect([placesOf(""), placesOf("Linear_0;<string>(1): f")]).toEqual([[], []]);
  expect(placesOf("a.py(3): f(1): g")).toEqual([{ file: "a.py", line: 3 }]);
});

test("what is installed is no place of the program, unless there is no other", () => {
  const torch = "torch/nn/modules/linear.py(125): forward";
  const stack = `<built-in function linear>;${torch};/usr/lib/python3/site-packages/x/a.py(1): f;train.py(18): step`;
  expect(ownPlaces(stack)).toEqual([{ file: "train.py", line: 18 }]);
  expect(ownPlaces(torch)).toEqual([{ file: "torch/nn/modules/linear.py", line: 125 }]);
  expect(ownPlaces("torchlike/a.py(2): f")).toEqual([{ file: "torchlike/a.py", line: 2 }]);
});
