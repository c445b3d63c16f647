import type { ComponentChildren } from "preact";
import { type Query, runPath, withQuery } from "../../api/paths";
import type { Envelope, Row } from "../../api/types";
import { Choices } from "../../components/Choices";
import { RankBars } from "../../components/charts/RankBars";
import { barsOf, kindOf, kindsOf, type Order, type PartColumn } from "../../components/charts/rank_bars";
import { Definition } from "../../components/Definition";
import { ErrorNotice, Loading } from "../../components/Notice";
import { formatCount } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { param } from "../../state/route";
import { detail, runId } from "../../state/runs";

/** An order of bars: its name in the address, its words, its columns, and which bar stands out of those that share a place. */
export type RankOrder = readonly [name: string, words: string, columns: Order, standsOut: string];

interface Props {
  readonly analysis: string;
  /** What the chart is called in the address, and a file of it. */
  readonly name: string;
  readonly title: string;
  readonly label: string;
  /** Which rows are asked for. It leaves out the rank that was chosen: here is where one is chosen. */
  readonly query: Query;
  /** Rows with a column for each part, where the analysis has them otherwise. */
  readonly rowsOf?: (rows: readonly Row[]) => readonly Row[];
  /** Parts of bars upwards, and downwards. */
  readonly up: readonly PartColumn[];
  readonly down?: readonly PartColumn[];
  /** In the order of ranks, those stand out that stand out in the second order. */
  readonly orders: readonly [RankOrder, RankOrder, ...RankOrder[]];
  readonly says?: ComponentChildren;
}

const MOST_ROWS = 10_000;
const ALL_ROWS = (rows: readonly Row[]) => rows;

/** An analysis of ranks as bars side by side; nothing where it has no rows. */
export function RankChart(props: Props) {
  const { analysis, name, title, label, rowsOf = ALL_ROWS, up, down = [], orders, says } = props;
  const [order, , columns, standsOut] = orders.find(([order]) => order === param(name)) ?? orders[0];
  const path = withQuery(runPath(runId.value, `analyses/${analysis}`), [...props.query, ["limit", MOST_ROWS]]);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading what={`Computing ${title.toLowerCase()}…`} />;
  const { results, page } = answer.value;
  if (results.length === 0) return null;
  const all = rowsOf(results);
  const kinds = kindsOf(all);
  const kind = kinds.find((kind) => kind === param("groups"));
  const rows = kind === undefined ? all : all.filter((row) => kindOf(row) === kind);
  const standing = orders[1][2];
  const bars = barsOf(rows, up, down, columns, standing === "rank" ? [] : standing);
  const left = page.matching > results.length;
  return (
    <section aria-label={title} aria-busy={answer.state === "loading"}>
      <h2>
        {title} <Definition analysis={analysis} />
      </h2>
      <div class="choices">
        <Choices
          label="In the order of"
          name={name}
          value={order}
          options={orders.map(([name, words]) => [name, words])}
        />
        {kinds.length > 0 && (
          <Choices
            label="Process groups"
            name="groups"
            value={kind ?? ""}
            options={[["", "all"], ...kinds.map((kind) => [kind, kind || "without a name"] as const)]}
          />
        )}
      </div>
      <RankBars name={name} label={label} parts={[...up, ...down]} bars={bars} standsOut={standsOut} />
      {(says || left) && (
        <p class="dim">
          {says}
          {left &&
            ` ${formatCount(results.length)} of ${formatCount(page.matching)} rows are drawn: those that the table has first.`}
        </p>
      )}
    </section>
  );
}
