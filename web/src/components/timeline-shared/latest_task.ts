/** Runs one thing of a kind at a time: the one before is given up. */
export class LatestTask {
  private readonly aborts = new Map<string, AbortController>();

  /** `onTrouble` hears what went wrong, and null when something went well. */
  constructor(private readonly onTrouble: (error: unknown) => void) {}

  run(kind: string, act: (signal: AbortSignal) => Promise<void>): void {
    this.aborts.get(kind)?.abort();
    const abort = new AbortController();
    this.aborts.set(kind, abort);
    act(abort.signal).then(
      () => {
        if (!abort.signal.aborted) this.onTrouble(null);
      },
      (error: unknown) => {
        if (!abort.signal.aborted) this.onTrouble(error);
      },
    );
  }

  giveUp(kind: string): void {
    this.aborts.get(kind)?.abort();
  }

  giveUpAll(): void {
    for (const abort of this.aborts.values()) abort.abort();
  }
}
