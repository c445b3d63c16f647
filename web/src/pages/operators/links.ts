import type { Row } from "../../api/types";
import type { RowLink } from "../../components/table/links";
import { sourceLine, timelineSearch } from "../../state/links";
import { findPage } from "../registry";
import { firstPlace } from "./stack";

/** From an operator to its calls on the timeline, and to the line that called it. */
export function operatorLinks(row: Row): RowLink[] {
  const links: RowLink[] = [];
  if (typeof row.name === "string" && findPage("timeline")) {
    links.push({ label: "Its calls on the timeline", href: timelineSearch(row.name) });
  }
  const place = typeof row.stack === "string" ? firstPlace(row.stack) : null;
  if (place && findPage("source")) {
    links.push({ label: `${place.file}:${place.line}`, href: sourceLine(place.file, place.line) });
  }
  return links;
}
