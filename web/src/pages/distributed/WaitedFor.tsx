import { runPath, withQuery } from "../../api/paths";
import type { Envelope, Row } from "../../api/types";
import { Value } from "../../components/Value";
import { formatCell } from "../../format/cell";
import { useAnswer } from "../../state/answer";
import { hrefOf, param, selection } from "../../state/route";
import { detail, runId } from "../../state/runs";

/** Which rank the others wait for, and how long: the answer before all charts. */
export function WaitedFor() {
  const path = withQuery(runPath(runId.value, "analyses/stragglers"), [...selection.value, ["limit", 1]]);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  // Why it failed is said where the chart of the same answer would be.
  if (answer.state === "failed") return null;
  if (!answer.value) return <p class="waited-for dim">Comparing collectives across ranks…</p>;
  const [row] = answer.value.results;
  return (
    <p class="waited-for" aria-busy={answer.state === "loading"}>
      {row ? <Sentence row={row} /> : "No collective could be compared across ranks: who waits for whom is not known."}
    </p>
  );
}

function Sentence({ row }: { row: Row }) {
  const rank = String(row.rank);
  const of = typeof row.group === "string" ? `process group ${formatCell("text", row.group)}` : "its process group";
  const isChosen = param("rank") !== undefined;
  if (row.held_up_ns === 0) {
    return isChosen
      ? `Rank ${rank} holds up nobody: to no collective it came later than any other.`
      : "No rank holds up the others: to no collective one came later than any other.";
  }
  return (
    <>
      {isChosen ? "The others wait for" : "The others wait longest for"}{" "}
      <strong>
        rank {rank}: <Value unit="ns" value={row.held_up_ns} />
      </strong>
      . It came last to <Value unit="count" value={row.last_calls} /> of <Value unit="count" value={row.calls} />{" "}
      collectives of {of}, in which <Value unit="count" value={row.ranks} /> ranks were compared.{" "}
      <a href={hrefOf("timeline", { rank })}>Rank {rank} on the timeline</a>
    </>
  );
}
