import { expect, test } from "vitest";
import { commandOf, heldOf } from "./keys";

const press = (key: string, more: Partial<{ ctrlKey: boolean; metaKey: boolean; altKey: boolean }> = {}) => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  ...more,
});

test("keys are those of Perfetto", () => {
  expect(["w", "s", "a", "d", "W"].map((key) => heldOf(press(key)))).toEqual(["in", "out", "left", "right", "in"]);
  const commands = [".", ",", "[", "]", "m", "f", "/", "Escape"].map((key) => commandOf(press(key)));
  expect(commands).toEqual(["next", "previous", "flow-previous", "flow-next", "mark", "fit", "search", "clear"]);
});

test("the browser keeps its own keys, but for Ctrl+P", () => {
  expect(commandOf(press("p", { ctrlKey: true }))).toBe("find-track");
  expect(commandOf(press("p", { metaKey: true }))).toBe("find-track");
  expect(commandOf(press("p"))).toBe(null);
  for (const key of ["w", "a", "s", "d", "f", "l", "ArrowLeft"]) {
    expect(heldOf(press(key, { ctrlKey: true }))).toBe(null);
    expect(commandOf(press(key, { ctrlKey: true }))).toBe(null);
    expect(heldOf(press(key, { altKey: true }))).toBe(null);
  }
  expect(commandOf(press("constructor"))).toBe(null);
});
