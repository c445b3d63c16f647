import { expect, test } from "vitest";
import { isLasting, runNamed } from "./run_names";

const RUNS = [
  { id: 0, key: "a.json-0011" },
  { id: 1, key: "7-00ff" },
];

test("a key names its run wherever it stands in the list, a number the one in its place", () => {
  expect(runNamed(RUNS, "7-00ff")?.id).toBe(1);
  expect(runNamed([{ id: 0, key: "7-00ff" }, ...RUNS.slice(0, 1)], "7-00ff")?.id).toBe(0);
  expect(runNamed(RUNS, "1")?.key).toBe("7-00ff");
  for (const text of ["2", "", "a.json", "7", "-1"]) expect(runNamed(RUNS, text)).toBeNull();
});

test("only a key is good for longer than a server lives", () => {
  expect([undefined, "", "0", "12", "a.json-0011", "7-00ff"].map(isLasting)).toEqual([
    false,
    false,
    false,
    false,
    true,
    true,
  ]);
});
