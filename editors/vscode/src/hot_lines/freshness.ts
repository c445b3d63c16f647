// Whether a file is still the one that was recorded.

/** What is known of a file and of a run. Times are Unix times in milliseconds. */
export interface Ages {
  readonly recordedMs: number;
  readonly changedMs: number;
  /** Edited since hot lines were asked for, or not saved. */
  readonly isEdited: boolean;
}

/** Why lines of the run may be other lines of the file now; null when they are the same. */
export function whyStale({ recordedMs, changedMs, isEdited }: Ages): string | null {
  if (isEdited) return "it was edited since";
  return changedMs > recordedMs ? "it was changed after the run was recorded" : null;
}

/** When a run began, from its `run.json`; null for any other file. */
export function recordedMsIn(runJson: string): number | null {
  try {
    const run: unknown = JSON.parse(runJson);
    if (typeof run !== "object" || run === null) return null;
    const { format, created_unix_ns: created } = run as Record<string, unknown>;
    return format === "stepscope-run" && typeof created === "number" ? created / 1e6 : null;
  } catch {
    return null;
  }
}
