import { expect, test } from "vitest";
import { type Files, findFile, isAllowed, partsOf } from "./find_file";

const FOLDER = "/code/project";

function filesOf(paths: readonly string[], replaced: Record<string, string> = {}, folders = [FOLDER]): Files {
  const isInFolder = (path: string) => folders.some((folder) => path.startsWith(`${folder}/`));
  return {
    folders,
    replaced,
    exists: async (path) => paths.includes(path),
    named: async (name) => paths.filter((path) => isInFolder(path) && path.endsWith(`/${name}`)),
  };
}

const file = (path: string) => ({ kind: "file", path });
const NONE = { kind: "none" };

test("a whole path in the workspace or among packages is opened as it is", async () => {
  const installed = "/env/lib/python3.11/site-packages/torch/nn/functional.py";
  const files = filesOf([`${FOLDER}/a.py`, installed]);
  expect(await findFile(`${FOLDER}/a.py`, files)).toEqual(file(`${FOLDER}/a.py`));
  expect(await findFile(installed, files)).toEqual(file(installed));
});

test("a whole path elsewhere is left to a person", async () => {
  const files = filesOf(["/etc/passwd", "/code/project-2/a.py"]);
  expect(await findFile("/etc/passwd", files)).toEqual({ kind: "outside", path: "/etc/passwd" });
  expect(await findFile("/env/site-packages/../../etc/passwd", files)).toEqual({
    kind: "outside",
    path: "/etc/passwd",
  });
  expect(await findFile("/code/project-2/a.py", files)).toEqual({ kind: "outside", path: "/code/project-2/a.py" });
});

test("a path of another machine is found by its longest end", async () => {
  const files = filesOf([`${FOLDER}/models/gpt.py`, `${FOLDER}/src/models/gpt.py`]);
  expect(await findFile("/job/src/models/gpt.py", files)).toEqual(file(`${FOLDER}/src/models/gpt.py`));
  expect(await findFile("/job/other/models/gpt.py", files)).toEqual(file(`${FOLDER}/models/gpt.py`));
});

test("settings come before ends that merely fit, the longest first", async () => {
  const paths = [`${FOLDER}/models/gpt.py`, "/data/a/models/gpt.py", "/data/b/gpt.py"];
  const files = filesOf(paths, { "/job": "/data/a", "/job/models": "/data/b/" });
  expect(await findFile("/job/models/gpt.py", files)).toEqual(file("/data/b/gpt.py"));
  expect(await findFile("/jobs/models/gpt.py", files)).toEqual(file(`${FOLDER}/models/gpt.py`));
});

test("a setting leads nowhere but below its folder", async () => {
  const files = filesOf(["/data/secret.py", "/data/a/x.py", "/data/packages/torch/x.py"], {
    "/job": "/data/a",
    "": "/data/packages",
  });
  expect(await findFile("/job/../secret.py", files)).toEqual(NONE);
  expect(await findFile("/job/x.py", files)).toEqual(file("/data/a/x.py"));
  expect(await findFile("torch/x.py", files)).toEqual(file("/data/packages/torch/x.py"));
});

test("what is not whole has to fit in all its parts", async () => {
  const files = filesOf([`${FOLDER}/module.py`, `${FOLDER}/.venv/lib/torch/nn/module.py`]);
  expect(await findFile("torch/nn/module.py", files)).toEqual(file(`${FOLDER}/.venv/lib/torch/nn/module.py`));
  expect(await findFile("torch/nn/other/module.py", files)).toEqual(NONE);
  expect(await findFile("module.py", files)).toEqual(file(`${FOLDER}/module.py`));
});

test("a script is found where it is the only one of its name, else a person chooses", async () => {
  const [a, b] = [`${FOLDER}/examples/a/train.py`, `${FOLDER}/examples/b/train.py`];
  expect(await findFile("train.py", filesOf([a]))).toEqual(file(a));
  expect(await findFile("train.py", filesOf([b, a]))).toEqual({ kind: "several", paths: [a, b] });
  expect(await findFile("/job/train.py", filesOf([a]))).toEqual({ kind: "several", paths: [a] });
  expect(await findFile("/job/b/train.py", filesOf([a, b]))).toEqual(file(b));
});

test("what is no file is not looked for", async () => {
  for (const name of ["", "/", "..", "../a.py", "<string>", "/..", "a/".repeat(99)])
    expect(await findFile(name, filesOf([`${FOLDER}/a.py`]))).toEqual(NONE);
  expect(partsOf("/a/./b//../c.py")).toEqual(["a", "c.py"]);
});

test("a folder itself, and what only begins like it, is not below it", () => {
  expect(isAllowed(`${FOLDER}/a.py`, [FOLDER])).toBe(true);
  expect(isAllowed(`${FOLDER}/../a.py`, [FOLDER])).toBe(false);
  expect(isAllowed(FOLDER, [FOLDER])).toBe(false);
  expect(isAllowed("/code/projects/a.py", [FOLDER])).toBe(false);
  expect(isAllowed("/x/site-packages", [FOLDER])).toBe(false);
  expect(isAllowed("/a.py", [])).toBe(false);
});
