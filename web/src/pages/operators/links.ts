import type { Row } from "../../api/types";
import { callersOf, sourceLine, timelineSearch } from "../../components/links";
import type { RowLink } from "../../components/table/links";
import { findPage } from "../registry";
import { placesOf } from "./stack";

/** Frames of a stack that are linked to, the innermost first. */
const FRAMES = 12;

/** From an operator to its calls on the timeline, and to the lines of its stack. */
export function operatorLinks(row: Row): RowLink[] {
  const links: RowLink[] = [];
  if (typeof row.name === "string") links.push({ label: "Who calls it", href: callersOf(row.name) });
  if (typeof row.name === "string" && findPage("timeline")) {
    links.push({ label: "Its calls on the timeline", href: timelineSearch(row.name) });
  }
  if (typeof row.stack === "string" && findPage("source")) {
    for (const { file, line } of placesOf(row.stack).slice(0, FRAMES)) {
      links.push({ label: `${file}:${line}`, href: sourceLine(file, line) });
    }
  }
  return links;
}
