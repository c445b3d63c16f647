import { expect, test } from "vitest";
import type { Row, RunDetail } from "../../api/types";
import { type Settings, settingsOf } from "./settings";

const run = (hosts: readonly (string | null)[], facts: RunDetail["facts"] = []) =>
  ({ ranks: hosts.map((host, rank) => ({ rank, host, pid: null, name: null })), facts }) as unknown as RunDetail;
const row = (name: string, a_value: string | null, b_value: string | null): Row => ({ name, a_value, b_value });
const ALL = { a: { run: 0, rank: null }, b: { run: 1, rank: null } };
const told = (settings: readonly Settings["same"][number][]) =>
  settings.map(({ words, before, now }) => `${words}: ${before} | ${now}`);

test("what differs, what only one says and what is the same are three lists", () => {
  const rows = [
    row("GPU", "A100", "V100"),
    row("torch_version", "2.6.0", "2.6.0"),
    row("nccl_version", "2.20", null),
    row("with_stack", "0", "1"),
    row("mast_job_version", "0", "1"),
  ];
  const a = run(["one"], [["command", "train.py --batch 8"]]);
  const b = run(["one"], [["command", "train.py --batch 16"]]);
  const { differing, ofOne, same } = settingsOf(rows, [a, b], ALL);
  expect(told(differing)).toEqual([
    "GPU: A100 | V100",
    "call stacks recorded: no | yes",
    "mast job version: 0 | 1",
    "command: train.py --batch 8 | train.py --batch 16",
  ]);
  expect(told(ofOne)).toEqual(["NCCL: 2.20 | null"]);
  expect(told(same)).toEqual(["PyTorch: 2.6.0 | 2.6.0", "host: one | one"]);
});

test("hosts are those of the ranks that are compared, each once", () => {
  const many = run(["c", "a", "b", "a", "d", "e", null]);
  const { differing } = settingsOf([], [many, many], { ...ALL, b: { run: 1, rank: 2 } });
  expect(told(differing)).toEqual(["host: a, b, c, d and 1 more | b"]);
  expect(settingsOf([], [run([null]), run([null])], ALL)).toEqual({ differing: [], ofOne: [], same: [] });
});
