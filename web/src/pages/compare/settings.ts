// What two runs ran on and with, as rows of a table: what differs, what is known of one of them only, what is the same.

import type { Row, RunDetail } from "../../api/types";
import type { Side } from "./sides";

/** A fact of both runs; null is not recorded. */
export interface Setting {
  readonly words: string;
  readonly before: string | null;
  readonly now: string | null;
}

export interface Settings {
  readonly differing: readonly Setting[];
  readonly ofOne: readonly Setting[];
  readonly same: readonly Setting[];
}

/** More hosts than this are counted, not named. */
const MOST_HOSTS = 4;

const VERSIONS: Readonly<Record<string, string>> = {
  torch_version: "PyTorch",
  cuda_version: "CUDA",
  cuda_driver_version: "CUDA driver",
  cuda_runtime_version: "CUDA runtime",
  cupti_version: "CUPTI",
  hip_driver_version: "HIP driver",
  hip_runtime_version: "HIP runtime",
  roctracer_version: "ROCtracer",
  nccl_version: "NCCL",
  cudnn_version: "cuDNN",
  python_version: "Python",
  triton_version: "Triton",
};

/** What a recording was asked for. */
const RECORDED: Readonly<Record<string, string>> = {
  profile_memory: "memory recorded",
  record_shapes: "shapes recorded",
  with_stack: "call stacks recorded",
  with_modules: "modules recorded",
  with_flops: "FLOPs recorded",
};

const OTHERS: Readonly<Record<string, string>> = {
  "world size": "number of ranks of the job",
  backend: "backend of communication",
  cpu: "processor",
};

/** What else a run's own facts say, by their keys, in this order. */
const FACTS: readonly (readonly [key: string, words: string])[] = [
  ["command", "command"],
  ["os", "operating system"],
  ["cpu_count", "number of processors"],
  ["torch_threads", "threads of PyTorch"],
];

/** The rows of `setting` of the server, and behind them what each run says of itself. */
export function settingsOf(
  rows: readonly Row[],
  details: readonly [RunDetail, RunDetail],
  sides: { readonly a: Side; readonly b: Side },
): Settings {
  const own = (words: string, of: (detail: RunDetail, side: Side) => string | null): Setting => ({
    words,
    before: of(details[0], sides.a),
    now: of(details[1], sides.b),
  });
  const all = [
    ...rows.map((row) => {
      const name = String(row.name);
      return { words: wordsOf(name), before: textOf(name, row.a_value), now: textOf(name, row.b_value) };
    }),
    own("host", hostsOf),
    ...FACTS.map(([key, words]) => own(words, (detail) => factOf(detail, key))),
  ].filter(({ before, now }) => before !== null || now !== null);
  const isOfBoth = ({ before, now }: Setting) => before !== null && now !== null;
  return {
    differing: all.filter((each) => isOfBoth(each) && each.before !== each.now),
    ofOne: all.filter((each) => !isOfBoth(each)),
    same: all.filter((each) => isOfBoth(each) && each.before === each.now),
  };
}

function wordsOf(name: string): string {
  const known = [VERSIONS, RECORDED, OTHERS].find((words) => Object.hasOwn(words, name));
  return known?.[name] ?? name.replaceAll("_", " ");
}

function textOf(name: string, value: unknown): string | null {
  if (typeof value !== "string") return null;
  if (!Object.hasOwn(RECORDED, name)) return value;
  return { "0": "no", false: "no", "1": "yes", true: "yes" }[value] ?? value;
}

function hostsOf({ ranks }: RunDetail, { rank }: Side): string | null {
  const asked = ranks.filter((each) => rank === null || each.rank === rank);
  const hosts = [...new Set(asked.flatMap(({ host }) => host ?? []))].sort();
  if (hosts.length > MOST_HOSTS)
    return `${hosts.slice(0, MOST_HOSTS).join(", ")} and ${hosts.length - MOST_HOSTS} more`;
  return hosts.length > 0 ? hosts.join(", ") : null;
}

const factOf = ({ facts }: RunDetail, key: string): string | null =>
  facts.find(([known]) => known === key)?.[1] ?? null;
