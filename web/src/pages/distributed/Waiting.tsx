import { runPath, withQuery } from "../../api/paths";
import type { Envelope } from "../../api/types";
import { Choices } from "../../components/Choices";
import { Figure } from "../../components/charts/Figure";
import { Legend } from "../../components/charts/Legend";
import { Definition } from "../../components/Definition";
import { ErrorNotice, Loading } from "../../components/Notice";
import { formatCount } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { param, selection, setParams } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { RankBars } from "./RankBars";
import { barsOf, kindOf, kindsOf, type PartColumn, partsOf } from "./rank_bars";

const UP: readonly PartColumn[] = [
  ["transfer", "transfer_ns"],
  ["waiting", "waiting_ns"],
];
const DOWN: readonly PartColumn[] = [["held_up", "held_up_ns"]];
const HELD_UP = ["held_up_ns"];
const ORDERS = [
  ["rank", "rank", "rank", "that holds up the others longest"],
  ["held", "holding up the others, longest first", HELD_UP, "that holds up the others longest"],
  ["waiting", "waiting, longest first", ["waiting_ns"], "that waits longest"],
  ["transfer", "transfer, longest first", ["transfer_ns"], "with the longest transfer"],
] as const;
const MOST_ROWS = 10_000;

/** How long each rank waits in collectives, and how long it holds up the others. */
export function Waiting() {
  const rank = param("rank");
  const [order, , columns, standsOut] = ORDERS.find(([name]) => name === param("waiting")) ?? ORDERS[0];
  // All ranks, also when one is chosen: it is where one is chosen.
  const part = selection.value.filter(([name]) => name !== "rank");
  const path = withQuery(runPath(runId.value, "analyses/stragglers"), [...part, ["limit", MOST_ROWS]]);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading what="Comparing collectives across ranks…" />;
  const { results, page } = answer.value;
  if (results.length === 0) return null;
  const kinds = kindsOf(results);
  const kind = kinds.find((kind) => kind === param("groups"));
  const rows = kind === undefined ? results : results.filter((row) => kindOf(row) === kind);
  const bars = barsOf(rows, UP, DOWN, columns, HELD_UP);
  return (
    <section aria-label="Waiting in collectives" aria-busy={answer.state === "loading"}>
      <h2>
        Transfer and waiting in collectives <Definition analysis="stragglers" />
      </h2>
      <div class="choices">
        <Choices
          label="In the order of"
          name="waiting"
          value={order}
          options={ORDERS.map(([name, words]) => [name, words])}
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
      <Figure name="waiting" title={<Legend parts={partsOf(bars, [...UP, ...DOWN])} />} isCanvas>
        <RankBars
          label="Transfer and waiting of each rank, and how long it holds up the others"
          bars={bars}
          standsOut={standsOut}
          chosen={rank}
          onChoose={(chosen) => setParams({ rank: chosen === rank ? null : chosen })}
        />
      </Figure>
      <p class="dim">
        Upwards is the time of the rank in collectives; downwards, how long others wait for it alone.
        {page.matching > results.length &&
          ` ${formatCount(results.length)} of ${formatCount(page.matching)} rows are drawn: those that hold up the others longest.`}
      </p>
    </section>
  );
}
