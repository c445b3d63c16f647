import { runPath, withQuery } from "../../api/paths";
import type { Envelope } from "../../api/types";
import { Table } from "../../components/table/Table";
import { useAnswer } from "../../state/answer";
import { selection } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { toRank } from "./links";

/** Collectives that do not end: where each rank is. Nothing where none hangs. */
export function Hangs() {
  const path = withQuery(runPath(runId.value, "analyses/hangs"), [...selection.value, ["limit", 1]]);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  const [first] = answer.value?.results ?? [];
  return (
    <>
      {first && (
        <p class="waited-for">
          A collective does not end. <strong>Rank {String(first.rank)}</strong>, {String(first.state)}:{" "}
          {String(first.verdict)}.
        </p>
      )}
      <Table
        analysis="hangs"
        title="Hangs"
        says="Of each process group in which a collective does not end, where its ranks are; first those that the others wait for."
        isOptional
        prefix="h."
        height={8}
        hidden={["dtype", "input_elements", "output_elements", "stack", "group_description", "group_size"]}
        linksOf={toRank()}
      />
    </>
  );
}
