// Answers that were asked for before, the most recently used first to stay.

/** A map that forgets what was not used for longest, once it holds more than `limit`. */
export class Kept<T> {
  readonly #values = new Map<string, T>();

  constructor(readonly limit: number) {}

  get(key: string): T | undefined {
    const value = this.#values.get(key);
    if (value === undefined) return undefined;
    this.#values.delete(key);
    this.#values.set(key, value);
    return value;
  }

  set(key: string, value: T): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    for (const oldest of this.#values.keys()) {
      if (this.#values.size <= this.limit) break;
      this.#values.delete(oldest);
    }
  }

  get size(): number {
    return this.#values.size;
  }
}
