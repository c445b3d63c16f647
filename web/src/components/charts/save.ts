// Charts as files. What the page's style sheets say is written into the copy, since a file has no style sheets.

const STYLED = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "opacity",
  "font-size",
  "font-family",
  "font-weight",
  "text-anchor",
];

/** Saves a chart as an SVG file that stands alone. */
export function saveSvg(svg: SVGSVGElement, name: string): void {
  save(new Blob([standalone(svg)], { type: "image/svg+xml" }), `${name}.svg`);
}

/** Saves a chart as a PNG file, at twice its size on the screen. */
export function savePng(svg: SVGSVGElement, name: string): void {
  const { width, height } = svg.getBoundingClientRect();
  const image = new Image();
  const source = URL.createObjectURL(new Blob([standalone(svg)], { type: "image/svg+xml" }));
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(width * 2);
    canvas.height = Math.round(height * 2);
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(source);
    canvas.toBlob((blob) => blob && save(blob, `${name}.png`));
  };
  image.src = source;
}

/** Saves what is drawn on a canvas as a PNG file, on the page's ground. */
export function saveCanvas(drawn: HTMLCanvasElement, name: string): void {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [drawn.width, drawn.height];
  const context = canvas.getContext("2d");
  if (!context) return;
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(drawn, 0, 0);
  canvas.toBlob((blob) => blob && save(blob, `${name}.png`));
}

function standalone(svg: SVGSVGElement): string {
  const { width, height } = svg.getBoundingClientRect();
  const copy = copyWithStyle(svg) as SVGSVGElement;
  const fills = document.querySelector("svg.fills defs");
  if (fills) copy.prepend(copyWithStyle(fills));
  const background = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  background.setAttribute("width", "100%");
  background.setAttribute("height", "100%");
  background.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(background);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  return new XMLSerializer().serializeToString(copy);
}

function copyWithStyle(element: Element): Element {
  const copy = element.cloneNode(true) as Element;
  const copies = [copy, ...copy.querySelectorAll("*")];
  for (const [at, original] of [element, ...element.querySelectorAll("*")].entries()) {
    const style = getComputedStyle(original);
    // A fill of a pattern is an attribute already; computed, it would name this page.
    for (const name of STYLED) {
      if (!original.getAttribute(name)) copies[at]?.setAttribute(name, style.getPropertyValue(name));
    }
  }
  return copy;
}

/** Gives the browser a file to save. */
export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // Firefox reads it after the click has returned.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
