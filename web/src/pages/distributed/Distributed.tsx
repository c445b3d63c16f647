import type { Row } from "../../api/types";
import { timelineSearch } from "../../components/links";
import { Empty } from "../../components/Notice";
import type { RowLink } from "../../components/table/links";
import { Table } from "../../components/table/Table";
import { hrefWith, timeWindow } from "../../state/route";
import { detail } from "../../state/runs";
import { findPage } from "../registry";
import { Bubbles } from "./Bubbles";
import { DeviceBars } from "./DeviceBars";
import { DeviceTable } from "./DeviceTable";
import { Hangs } from "./Hangs";
import { Lateness } from "./Lateness";
import { toRank } from "./links";
import { RankOverview } from "./RankOverview";
import { RankSteps } from "./RankSteps";
import { StepMap } from "./StepMap";
import { WaitedFor } from "./WaitedFor";
import { Waiting } from "./Waiting";

/** What each rank does, beside the others: steps, computation and communication, collectives, devices. */
export default function Distributed() {
  const has = detail.value?.has;
  const ranks = detail.value?.ranks.length ?? 0;
  const isCompared = has?.collectives === true && ranks > 1;
  return (
    <>
      <h1>Distributed</h1>
      {has?.collectives && <Hangs />}
      {isCompared && <WaitedFor />}
      <p class="dim">
        Each rank as it recorded itself, side by side. The time of a collective has waiting for other ranks in it; a
        table of its own says which ranks the others wait for.
      </p>
      {timeWindow.value && (
        <Empty>
          Steps cover the whole run; devices and tables cover the selected range only.{" "}
          <a href={hrefWith({ window: null })}>Show the whole run</a>
        </Empty>
      )}
      {ranks > 1 && <RankOverview />}
      {isCompared && <Waiting />}
      {isCompared && <Lateness />}
      {ranks > 1 && <StepMap />}
      {ranks > 1 && <RankSteps />}
      <Table analysis="step_breakdown" title="Steps as a table" prefix="s." height={8} hidden={["source"]} />
      {has?.collectives && (
        <Table analysis="ranks_overview" title="Computation and communication by step" prefix="v." height={8} />
      )}
      <DeviceBars />
      {has?.devices && (
        <Table analysis="overlap" title="Communication that is hidden" prefix="o." height={8} hidden={["step"]} />
      )}
      {has?.collectives ? (
        <Table
          analysis="collectives"
          title="Collectives"
          prefix="c."
          hidden={["input_elements", "output_elements", "group_description", "kernels", "works"]}
          linksOf={onTimeline}
        />
      ) : (
        <Empty>No collective was recorded: no rank communicated, or it did so without torch.distributed.</Empty>
      )}
      {isCompared && (
        <Table
          analysis="stragglers"
          title="Which ranks the others wait for"
          prefix="w."
          hidden={["group_description"]}
          linksOf={toRank()}
        />
      )}
      {ranks > 1 && (
        <Table
          analysis="imbalance"
          title="How unequally ranks share work"
          says="For each kind of work, what is gained if the rank with the most had as much as the middle one."
          isOptional
          prefix="i."
          height={8}
          linksOf={toRank("max_rank")}
        />
      )}
      {has?.collectives && <Bubbles />}
      {isCompared && <Table analysis="what_if" title="What a change would save" prefix="f." linksOf={toRank()} />}
      <Table
        analysis="layout"
        title="Process groups"
        says="What each process group is for, and how that is known."
        isOptional
        prefix="g."
        height={8}
      />
      {isCompared && <Table analysis="clock_residuals" title="Clocks" prefix="k." linksOf={toRank()} />}
      <DeviceTable />
    </>
  );
}

function onTimeline(row: Row): RowLink[] {
  if (typeof row.name !== "string" || !findPage("timeline")) return [];
  return [{ label: "On the timeline", href: timelineSearch(row.name) }];
}
