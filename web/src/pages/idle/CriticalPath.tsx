import { runPath, withQuery } from "../../api/paths";
import type { Envelope, Row } from "../../api/types";
import { BreakdownBar } from "../../components/charts/BreakdownBar";
import { BreakdownTable } from "../../components/charts/BreakdownTable";
import { Definition } from "../../components/Definition";
import { timelineAt, timelineSearch } from "../../components/links";
import { ErrorNotice, Loading } from "../../components/Notice";
import { TopBars } from "../../components/TopBars";
import { stretchLinks } from "../../components/table/links";
import { Table } from "../../components/table/Table";
import { formatCount } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { selection } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { criticalPath } from "./critical_path";

/** Steps whose mean is drawn. */
const MOST = 10_000;

/** What the length of the steps consists of: only what is on this chain makes a step shorter. */
export function CriticalPath() {
  const path = withQuery(runPath(runId.value, "analyses/critical_path"), [...selection.value, ["limit", MOST]]);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading what="Following what steps wait for…" />;
  const mean = criticalPath(answer.value.results);
  if (!mean) return null;
  return (
    <>
      <section aria-label="Critical path">
        <h2>
          Critical path <Definition analysis="critical_path" />
        </h2>
        <p class="dim">
          The chain of work that a step consists of: to make steps shorter, shorten what is on it.{" "}
          {mean.steps === 1 ? "One step" : `Mean of ${formatCount(mean.steps)} steps`}.
        </p>
        <BreakdownBar breakdown={mean.breakdown} label="The critical path of a step" />
        <BreakdownTable breakdown={mean.breakdown} label="The critical path of a step" />
      </section>
      <TopBars
        analysis="critical_path_slices"
        nouns="names"
        by="path_ns"
        name="name"
        nameless="nothing was recorded"
        isDevice={false}
        linkOf={(row) => (typeof row.name === "string" ? timelineSearch(row.name) : undefined)}
      />
      <Table
        analysis="critical_path"
        title="Critical path of each step"
        prefix="c."
        height={8}
        hidden={["is_complete", "source"]}
        linksOf={(row) => stretchLinks(row, "length_ns")}
      />
      <Table
        analysis="critical_path_pieces"
        title="Pieces of the critical path"
        prefix="p."
        height={8}
        hidden={["end_ns", "pieces", "class_ns", "slice_start_ns"]}
        linksOf={pieceLinks}
      />
    </>
  );
}

function pieceLinks(row: Row) {
  const at = row.slice_start_ns;
  if (typeof at !== "number" && typeof at !== "bigint") return [];
  const slice = { rank: Number(row.rank), start_ns: at, name: row.name === null ? null : String(row.name) };
  return [{ label: "On the timeline", href: timelineAt(slice) }];
}
