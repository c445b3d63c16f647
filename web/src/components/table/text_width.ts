// How wide texts are, in rem, in the font of the page.

let context: CanvasRenderingContext2D | null = null;

/** The width of the widest of these texts. */
export function widest(texts: readonly string[]): number {
  context ??= document.createElement("canvas").getContext("2d");
  if (!context) return 0;
  const style = getComputedStyle(document.body);
  context.font = `${style.fontSize} ${style.fontFamily}`;
  let most = 0;
  for (const text of texts) most = Math.max(most, context.measureText(text).width);
  return most / remPx();
}

/** How many pixels a rem has: more where a person wants larger text. */
export const remPx = (): number => Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
