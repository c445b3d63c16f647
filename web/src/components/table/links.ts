import type { Row } from "../../api/types";
import { sourceLine } from "../links";

/** Where a row leads: to the timeline, to source, to another page. */
export interface RowLink {
  readonly label: string;
  readonly href: string;
}

/** From a row that names a place in the program to its code. */
export function codeLinks(row: Row): RowLink[] {
  if (typeof row.file !== "string") return [];
  const line = typeof row.line === "number" || typeof row.line === "bigint" ? row.line : null;
  return [{ label: "The code", href: sourceLine(row.file, line) }];
}
