// What the server is asked of two sides.

import { type Query, withQuery } from "../../api/paths";
import type { Envelope, RunDetail } from "../../api/types";
import type { Source } from "../../components/table/Table";
import { type Answer, useAnswer } from "../../state/answer";
import { queryOf, type Sides } from "./sides";

/** Two sides of which both are known. */
export interface Compared {
  readonly sides: Sides;
  /** What the sides are called: before, now. */
  readonly names: readonly [string, string];
  readonly details: readonly [RunDetail, RunDetail];
}

const PATH = "api/compare";

/** Another reading of either run is another answer. */
const versionOf = ({ details }: Compared): string => details.map((detail) => detail.version).join(".");

/** Where the rows of a table of this come from. */
export const sourceOf = (compared: Compared, what: string): Source => ({
  path: PATH,
  query: [...queryOf(compared.sides), ["what", what]],
  version: versionOf(compared),
});

/** Asks for a comparison; nothing while `what` is null. */
export function useCompared(compared: Compared, what: string | null, query: Query = []): Answer<Envelope> {
  const path = what === null ? null : withQuery(PATH, [...queryOf(compared.sides), ["what", what], ...query]);
  return useAnswer<Envelope>(path, versionOf(compared));
}
