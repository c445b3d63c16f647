import type { Row } from "../../api/types";
import { linksOfName, modulesBelow, type RowLink, sourceLine } from "../../components/links";
import { findPage } from "../registry";
import { placesOf } from "./stack";

/** Frames of a stack that are linked to, the innermost first. */
const FRAMES = 12;

/** From an operator to who calls it, its calls on the timeline, its module, and the lines of its stack. */
export function operatorLinks(row: Row): RowLink[] {
  const links = typeof row.name === "string" ? linksOfName("op", row.name) : [];
  if (typeof row.module === "string") links.push({ label: "Its module", href: modulesBelow(row.module) });
  if (typeof row.stack === "string" && findPage("source")) {
    for (const { file, line } of placesOf(row.stack).slice(0, FRAMES)) {
      links.push({ label: `${file}:${line}`, href: sourceLine(file, line) });
    }
  }
  return links;
}
