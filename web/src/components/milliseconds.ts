// Moments as a person types them: milliseconds with a decimal point, exact to the nanosecond.

/** `12.5` as 12,500,000 ns; null for anything else. */
export function nsOfMilliseconds(text: string): number | null {
  const [, whole = "", fraction = ""] = /^(\d{1,9})(?:\.(\d{0,6}))?$/.exec(text.trim()) ?? [];
  return whole === "" ? null : Number(`${whole}${fraction.padEnd(6, "0")}`);
}

/** 12,500,000 ns as `12.5`: every digit, and no more. */
export function millisecondsOf(ns: number): string {
  const digits = String(ns).padStart(7, "0");
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/\.?0*$/, "");
}
