// The page's colours and type, read from its styles, so that the canvas follows light, dark and high contrast.

import { CLASSES } from "../classes";
import { parseRgb, type Theme } from "./colours";

/** What the styles say where `element` stands. */
export function readTheme(element: HTMLElement): Theme {
  const probe = document.createElement("span");
  element.append(probe);
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const theme: Theme = {
    classes: CLASSES.map((name) => parseRgb(colour(`class-${name}`))),
    ground: colour("page"),
    band: colour("panel"),
    header: colour("chosen"),
    line: colour("line"),
    text: colour("text"),
    faint: colour("dim"),
    accent: colour("accent"),
    font: `11px ${getComputedStyle(element).fontFamily}`,
    isDark: parseRgb(colour("page")).reduce((sum, part) => sum + part, 0) < 384,
  };
  probe.remove();
  return theme;
}
