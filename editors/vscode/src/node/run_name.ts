// The name of a new run's folder, as the command gives it: `20260101-120000-train`.

import { basename } from "node:path";

/** UTC time and the name of the program. */
export function runName(file: string, now: Date): string {
  const time = now.toISOString().replace(/[-:]/g, "").replace("T", "-").slice(0, 15);
  return `${time}-${basename(file).replace(/\.[^.]*$/, "")}`;
}
