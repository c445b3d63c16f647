import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { Menu } from "../Menu";
import { saveCanvas, savePng, saveSvg } from "./save";

interface Props {
  readonly title: ComponentChildren;
  /** What a file of it is called. */
  readonly name: string;
  /** True for a chart on a canvas, which can be saved as pixels only. */
  readonly isCanvas?: boolean;
  readonly children: ComponentChildren;
}

/** A chart with its title, and a menu that saves it as a picture. */
export function Figure({ title, name, isCanvas = false, children }: Props) {
  const figure = useRef<HTMLElement>(null);
  const save = (write: (svg: SVGSVGElement, name: string) => void) => () => {
    const svg = figure.current?.querySelector<SVGSVGElement>("svg.chart");
    if (svg) write(svg, name);
  };
  const savePixels = () => {
    const canvas = figure.current?.querySelector("canvas");
    if (canvas) saveCanvas(canvas, name);
  };
  return (
    <figure ref={figure}>
      <figcaption>
        {title}
        <Menu label="Save">
          <div class="actions">
            {!isCanvas && (
              <button type="button" onClick={save(saveSvg)}>
                As SVG
              </button>
            )}
            <button type="button" onClick={isCanvas ? savePixels : save(savePng)}>
              As PNG
            </button>
          </div>
        </Menu>
      </figcaption>
      {children}
    </figure>
  );
}
