import { expect, test } from "vitest";
import { firstPlace } from "./stack";

test("the innermost frame with a file is the place", () => {
  const stack = "<built-in function linear>;Linear_0;<string>(1): <module>;a (b)/c.py(18): forward;d.py(1): main";
  expect(firstPlace(stack)).toEqual({ file: "a (b)/c.py", line: 18 });
  expect([firstPlace(""), firstPlace("Linear_0;<string>(1): f")]).toEqual([null, null]);
});
