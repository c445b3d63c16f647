/** Runs one task of a kind at a time: a new one cancels the one before. */
export class LatestTask {
  private readonly aborts = new Map<string, AbortController>();

  /** `onError` is called with what went wrong, and with null when something went well. */
  constructor(private readonly onError: (error: unknown) => void) {}

  run(kind: string, act: (signal: AbortSignal) => Promise<void>): void {
    this.cancel(kind);
    const abort = new AbortController();
    this.aborts.set(kind, abort);
    act(abort.signal).then(
      () => {
        if (!abort.signal.aborted) this.onError(null);
      },
      (error: unknown) => {
        if (!abort.signal.aborted) this.onError(error);
      },
    );
  }

  cancel(kind: string): void {
    this.aborts.get(kind)?.abort();
  }

  cancelAll(): void {
    for (const abort of this.aborts.values()) abort.abort();
  }
}
