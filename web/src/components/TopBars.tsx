import { type Query, runPath, withQuery } from "../api/paths";
import type { Envelope, Row } from "../api/types";
import { formatCount } from "../format/units";
import { useAnswer } from "../state/answer";
import { selection } from "../state/route";
import { detail, runId } from "../state/runs";
import { barNames } from "./bar_names";
import { BarList } from "./charts/BarList";
import { ErrorNotice, Loading } from "./Notice";
import { measureWords } from "./vocabulary";

interface Props {
  readonly analysis: string;
  /** The column whose largest values are shown. */
  readonly by: string;
  /** The column that names a row, and what one without a name is. */
  readonly name: string;
  readonly nameless?: string;
  /** True where that column has call stacks. */
  readonly isStack?: boolean;
  /** True where it has paths, which differ at their ends. */
  readonly isPath?: boolean;
  /** A column that stands behind each name where its values differ. */
  readonly beside?: string | undefined;
  /** Columns that tell rows apart that are alike without them. */
  readonly apart?: readonly string[];
  readonly query?: Query;
  /** The part of the run, where it is not the one that was chosen for all pages. */
  readonly part?: Query;
  readonly count?: number;
  /** What a row is, when there are several. */
  readonly nouns: string;
  /** True for what devices do; bars then have the colour of computing. */
  readonly isDevice: boolean;
  /** Where a bar's name leads. */
  readonly linkOf?: (row: Row) => string | undefined;
}

/** Columns that always have paths. */
const PATHS: ReadonlySet<string> = new Set(["file", "module"]);

/** Which of how many are drawn, and by what they are ordered. */
export function topWords(shown: number, all: number, nouns: string, by: string): string {
  if (all === 1) return by.charAt(0).toUpperCase() + by.slice(1);
  return shown < all ? `Top ${shown} of ${formatCount(all)} ${nouns} by ${by}` : `All ${shown} ${nouns} by ${by}`;
}

/** The rows with the largest values of a column, as bars. */
export function TopBars({
  analysis,
  by,
  name,
  nameless = "–",
  isStack = false,
  isPath = PATHS.has(name),
  beside,
  apart = [],
  query = [],
  part,
  count = 10,
  nouns,
  isDevice,
  linkOf,
}: Props) {
  const path = withQuery(runPath(runId.value, `analyses/${analysis}`), [
    ...(part ?? selection.value),
    ...query,
    ["sort", by],
    ["limit", count],
  ]);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading />;
  const column = answer.value.columns.find((column) => column.name === by);
  const { results } = answer.value;
  const names = barNames(results, { column: name, nameless, isStack, beside, apart });
  const bars = results.map((row, at) => ({
    name: nameless,
    ...names[at],
    value: row[by] ?? null,
    href: linkOf?.(row),
  }));
  const shown = bars.filter((bar) => bar.value !== null && Number(bar.value) > 0);
  if (!column || shown.length === 0) return null;
  const label = topWords(shown.length, answer.value.page.matching, nouns, measureWords(column));
  return (
    <figure>
      <figcaption>{label}</figcaption>
      <BarList label={label} unit={column.unit} bars={shown} isDevice={isDevice} isPath={isPath} />
    </figure>
  );
}
