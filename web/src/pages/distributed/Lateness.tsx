import { joined, type PartColumn } from "../../components/charts/rank_bars";
import { Table } from "../../components/table/Table";
import { ofAllRanks } from "./chosen";
import { toRank } from "./links";
import { RankChart } from "./RankChart";

/** Causes, in the order of the analysis. */
const CAUSES = [
  "compute",
  "slow_clock",
  "other_collective",
  "copy",
  "profiler_overhead",
  "garbage_collection",
  "allocation",
  "host_sync",
  "input",
  "io",
  "launch_bound",
  "host_other",
  "device_wait",
  "unknown",
  "unexplained",
] as const;
const PARTS = CAUSES.map((cause): PartColumn => [cause, cause]);
const ORDERS = [
  ["rank", "rank", "rank", "that is late by most"],
  ["late", "lateness, longest first", CAUSES, "that is late by most"],
] as const;

/** Why each rank comes late to collectives: its lateness divided over causes. */
export function Lateness() {
  return (
    <>
      <RankChart
        analysis="lateness"
        name="late"
        title="Why ranks come late to collectives"
        label="Lateness of each rank by cause"
        query={ofAllRanks()}
        rowsOf={(rows) => joined(rows, "cause", "late_ns")}
        up={PARTS}
        orders={ORDERS}
      />
      <Table
        analysis="lateness"
        title="Causes of lateness"
        says="The lateness of each rank to collectives of a process group, divided over what it did meanwhile."
        isOptional
        prefix="l."
        height={8}
        hidden={["group_description"]}
        linksOf={toRank()}
      />
    </>
  );
}
