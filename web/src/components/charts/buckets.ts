// How wide the buckets of a curve are asked for, so that there are enough for a chart and no more.

import type { Stretch } from "./series";

/** Buckets that a chart of usual width can show. */
const BUCKETS = 500;

/** A round width, 1, 2 or 5 times a power of ten, of which `stretch` has 200 to 500; as milliseconds of a request. */
export function bucketMs({ start_ns, end_ns }: Stretch): string {
  const least = Math.max((end_ns - start_ns) / BUCKETS, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const ns = [1, 2, 5, 10].map((factor) => factor * power).find((width) => width >= least * (1 - 1e-9)) ?? least;
  return (Math.min(ns, 9e14) / 1e6).toFixed(6).replace(/\.?0+$/, "");
}
