/** Round values from 0 to at least `most`, about `count` of them, at steps of 1, 2 or 5 times a power of ten. */
export function ticks(most: number, count: number): number[] {
  if (!(most > 0) || !Number.isFinite(most)) return [0];
  const rough = most / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough * (1 - 1e-9)) ?? 10 * power;
  const last = Math.ceil(most / step - 1e-9);
  return Array.from({ length: last + 1 }, (_, at) => at * step);
}

/** Every how many of `count` labels have room, when each needs `needed` of `width` pixels. */
export function labelEvery(count: number, width: number, needed: number): number {
  return Math.max(1, Math.ceil((count * needed) / Math.max(1, width)));
}
