import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { Menu } from "../Menu";
import { savePng, saveSvg } from "./save";

/** A chart with its title, and a menu that saves it as a picture. */
export function Figure({
  title,
  name,
  children,
}: {
  title: ComponentChildren;
  name: string;
  children: ComponentChildren;
}) {
  const figure = useRef<HTMLElement>(null);
  const save = (write: (svg: SVGSVGElement, name: string) => void) => () => {
    const svg = figure.current?.querySelector<SVGSVGElement>("svg.chart");
    if (svg) write(svg, name);
  };
  return (
    <figure ref={figure}>
      <figcaption>
        {title}
        <Menu label="Save">
          <div class="actions">
            <button type="button" onClick={save(saveSvg)}>
              As SVG
            </button>
            <button type="button" onClick={save(savePng)}>
              As PNG
            </button>
          </div>
        </Menu>
      </figcaption>
      {children}
    </figure>
  );
}
