import { runPath, withQuery } from "../../api/paths";
import type { Envelope } from "../../api/types";
import type { PartColumn } from "../../components/charts/rank_bars";
import { Table } from "../../components/table/Table";
import { Value } from "../../components/Value";
import { useAnswer } from "../../state/answer";
import { param } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { ofAllRanks } from "./chosen";
import { toRank } from "./links";
import { RankChart } from "./RankChart";

const PARTS: readonly PartColumn[] = [
  ["warm_up", "warm_up_ns"],
  ["steady", "steady_ns"],
  ["drain", "drain_ns"],
];
const ORDERS = [
  ["rank", "rank", "rank", "that is idle longest"],
  ["idle", "idle time, longest first", ["idle_ns"], "that is idle longest"],
] as const;

/** When the ranks of a pipeline do not compute: in the step that was chosen, or else in the one with most of it. */
export function Bubbles() {
  const longest = [...ofAllRanks(), ["where", "is_complete:eq:true"], ["sort", "idle_ns"], ["limit", 1]] as const;
  const path = withQuery(runPath(runId.value, "analyses/bubbles"), longest);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  const [first] = answer.value?.results ?? [];
  // Where nothing marks steps the whole trace is one, without a number.
  const step = first?.step ?? null;
  return (
    <>
      {first && (
        <RankChart
          analysis="bubbles"
          name="bubbles"
          title={step === null ? "Bubbles of pipeline stages" : `Bubbles of pipeline stages in step ${step}`}
          label="Time without computation of each rank of a pipeline"
          query={step === null ? ofAllRanks() : [...ofAllRanks(), ["where", `step:eq:${step}`]]}
          up={PARTS}
          orders={ORDERS}
          says={
            <>
              {step !== null && param("step") === undefined && "Of all steps it has the rank that is idle longest. "}
              {first.ideal_ratio !== null && (
                <>
                  Rank {String(first.rank)} is idle for <Value unit="ratio" value={first.idle_ratio} /> of the step;{" "}
                  {String(first.stages)} stages with {String(first.micro_batches)} micro-batches explain{" "}
                  <Value unit="ratio" value={first.ideal_ratio} /> of it.
                </>
              )}
            </>
          }
        />
      )}
      <Table
        analysis="bubbles"
        title="Pipeline bubbles"
        says="When the ranks of a pipeline do not compute in each step, and the least share that the schedule allows."
        isOptional
        prefix="b."
        height={8}
        linksOf={toRank()}
      />
    </>
  );
}
