import { afterEach, expect, test } from "vitest";
import type { AnalysisInfo } from "../api/types";
import { analyses } from "../state/runs";
import { analysisTitle, measureWords, withoutCode, wordsOf } from "./vocabulary";

const info = (name: string, ...columns: string[]) => {
  return [name, { columns: columns.map((name) => ({ name })) } as unknown as AnalysisInfo] as const;
};
afterEach(() => {
  analyses.value = new Map();
});

test("analyses have titles", () => {
  const names = ["idle_causes", "gpu_utilization_curve", "io_files", "what_if", "overlap"];
  const titles = ["Idle causes", "GPU utilization curve", "I/O files", "What if", "Overlap"];
  expect(names.map(analysisTitle)).toEqual(titles);
});

test("times are called times", () => {
  const words = (label: string, unit: "ns" | "bytes") => measureWords({ label, unit });
  expect([
    words("device self", "ns"),
    words("total", "ns"),
    words("idle", "ns"),
    words("allocated self", "bytes"),
  ]).toEqual(["device self time", "total time", "idle", "allocated self"]);
});

test("names of analyses, columns and parts have words, what a person types stays as it is", () => {
  analyses.value = new Map([info("overlap", "busy_ns", "slack_ns_max", "bytes"), info("idle_causes")]);
  expect(["idle_causes", "overlap", "busy_ns", "slack_ns_max", "host_sync"].map(wordsOf)).toEqual([
    "Idle causes",
    null,
    "busy",
    "slack max",
    "host waits for the device",
  ]);
  expect(["num_workers", "bytes", "constructor", "__proto__"].map(wordsOf)).toEqual([null, null, null, null]);
  expect(withoutCode("`busy_ns` as in `idle_causes`; set `num_workers`.")).toBe(
    "busy as in Idle causes; set num_workers.",
  );
});
