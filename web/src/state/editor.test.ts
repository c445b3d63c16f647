import { expect, test } from "vitest";
import { chooseEditor, chosenTemplate, EDITORS, editorUrl } from "./editor";

const url = (name: string, path: string, line: number) => editorUrl(EDITORS[name]?.template ?? "", path, line);

test("an editor opens a line, as the command has it", () => {
  expect(url("vscode", "/a b/{line}.py", 7)).toBe("vscode://file/a%20b/%7Bline%7D.py:7");
  expect(url("cursor", "/x.py", 1)).toBe("cursor://file/x.py:1");
  expect(url("idea", "/a b/{line}.py", 7)).toBe("idea://open?file=/a%20b/%7Bline%7D.py&line=7");
  expect(editorUrl("zed://file/{file}:{line}", "/$&.py", 7)).toBe("zed://file/%24%26.py:7");
});

test("a path cannot leave its place in the address", () => {
  expect(url("idea", "/a&line=9#?'(b)*!.py", 7)).toBe("idea://open?file=/a%26line%3D9%23%3F%27%28b%29%2A%21.py&line=7");
  expect(url("vscode", "//javascript:alert(1)//\ud800é", 7)).toBe(
    "vscode://file/javascript%3Aalert%281%29//%EF%BF%BD%C3%A9:7",
  );
});

test("a path that is not whole opens nothing", () => {
  expect([url("vscode", "x.py", 1), url("vscode", "", 1)]).toEqual([null, null]);
});

test("only editors that are known are chosen, where nothing is kept too", () => {
  chooseEditor("idea");
  expect(chosenTemplate()).toBe(EDITORS.idea?.template);
  for (const name of ["constructor", "emacs", ""]) {
    chooseEditor(name);
    expect(chosenTemplate()).toBeNull();
  }
});
