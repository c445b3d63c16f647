// The classes that everything on a page is coloured by. Colours are custom properties in styles/classes.css.

/** Classes by their number in the HTTP interface; `--class-NAME` is the colour. */
export const CLASSES = [
  "other",
  "compute",
  "communication",
  "copy",
  "synchronization",
  "host-op",
  "label",
  "python",
  "runtime",
  "input",
  "overhead",
] as const;

export type ClassName = (typeof CLASSES)[number] | "idle";

/** What makes neighbours differ without colour. */
export type Texture = "plain" | "rising" | "falling" | "upright" | "level" | "dots" | "cross" | "dense";

/** How a part of a breakdown looks and what it is called. */
export interface PartLook {
  readonly colour: ClassName;
  readonly texture: Texture;
  readonly words: string;
}

/** Parts of breakdowns, by the name that the report has for them; the words are the report's. */
export const PARTS: Readonly<Record<string, PartLook>> = {
  kernel: { colour: "compute", texture: "plain", words: "compute kernels" },
  compute: { colour: "compute", texture: "plain", words: "compute" },
  overlap: { colour: "host-op", texture: "cross", words: "compute and communication at once" },
  neither: { colour: "other", texture: "plain", words: "neither" },
  transfer: { colour: "communication", texture: "rising", words: "transfer" },
  waiting: { colour: "idle", texture: "dots", words: "waiting for later ranks" },
  held_up: { colour: "synchronization", texture: "upright", words: "holds up the others" },
  comm: { colour: "communication", texture: "rising", words: "exposed communication" },
  exposed_comm: { colour: "communication", texture: "rising", words: "exposed communication" },
  memcpy: { colour: "copy", texture: "upright", words: "copies" },
  exposed_copy: { colour: "copy", texture: "upright", words: "exposed copies" },
  memset: { colour: "copy", texture: "dots", words: "memsets" },
  runtime: { colour: "runtime", texture: "falling", words: "device API calls" },
  dataloader: { colour: "input", texture: "level", words: "waiting for data" },
  io: { colour: "input", texture: "cross", words: "reading and writing files" },
  cpu: { colour: "host-op", texture: "dense", words: "operators on the CPU" },
  other: { colour: "other", texture: "plain", words: "outside of operators" },
  idle: { colour: "idle", texture: "dots", words: "idle" },
  warm_up: { colour: "label", texture: "rising", words: "idle before the first computation" },
  steady: { colour: "idle", texture: "dots", words: "idle between" },
  drain: { colour: "copy", texture: "falling", words: "idle after the last" },
  other_collective: { colour: "communication", texture: "rising", words: "other collective" },
  copy: { colour: "copy", texture: "upright", words: "copy" },
  profiler_overhead: { colour: "overhead", texture: "dense", words: "profiler overhead" },
  garbage_collection: { colour: "python", texture: "cross", words: "garbage collection" },
  allocation: { colour: "overhead", texture: "level", words: "allocation" },
  host_sync: { colour: "synchronization", texture: "upright", words: "host waits for the device" },
  input: { colour: "input", texture: "level", words: "waiting for data" },
  slow_clock: { colour: "compute", texture: "dots", words: "slow clock" },
  launch_bound: { colour: "runtime", texture: "falling", words: "host busy launching work" },
  launch_latency: { colour: "runtime", texture: "dots", words: "from launch to start" },
  queue_wait: { colour: "copy", texture: "dots", words: "queued behind other work" },
  peer_wait: { colour: "communication", texture: "rising", words: "waiting for communication" },
  communication: { colour: "communication", texture: "rising", words: "communication" },
  host_op: { colour: "host-op", texture: "dense", words: "operators on the host" },
  host_other: { colour: "host-op", texture: "dense", words: "host does something else" },
  device_wait: { colour: "label", texture: "rising", words: "device waits" },
  unknown: { colour: "idle", texture: "dots", words: "not known" },
  unexplained: { colour: "other", texture: "cross", words: "unexplained" },
};

/** The look of a part; one that is not known looks like "other" under its own name. */
export function partLook(part: string): PartLook {
  return Object.hasOwn(PARTS, part) && PARTS[part]
    ? PARTS[part]
    : { colour: "other", texture: "cross", words: part.replaceAll("_", " ") };
}
