import { runPath, withQuery } from "../../api/paths";
import type { Envelope, Row } from "../../api/types";
import { partLook } from "../../classes";
import { Legend } from "../../components/charts/Legend";
import { fillOf } from "../../components/charts/Patterns";
import { Pointed, usePointed } from "../../components/charts/Pointed";
import { Definition } from "../../components/Definition";
import { ErrorNotice, Loading } from "../../components/Notice";
import { Table } from "../../components/table/Table";
import { Value } from "../../components/Value";
import { exactCell, formatCell } from "../../format/cell";
import { formatCount } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { selection } from "../../state/route";
import { detail, runId } from "../../state/runs";

const PARTS = ["compute", "exposed_comm", "exposed_copy", "idle"] as const;
/** Bars that are drawn; all devices are in the tables. */
const DRAWN = 64;

/** What the devices of each rank do with their time: compute, communicate without computing, copy without either, idle. */
export function DeviceBars() {
  const pointed = usePointed();
  const point = (words: string) => {
    pointed.value = words;
  };
  const query = [...selection.value, ["limit", DRAWN]] as const;
  const path = withQuery(runPath(runId.value, "analyses/temporal_breakdown"), query);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading what="Computing what devices do…" />;
  const { results, page } = answer.value;
  if (results.length === 0) return null;
  return (
    <section aria-label="Computation and communication">
      <h2>
        Computation and communication of devices <Definition analysis="temporal_breakdown" />
      </h2>
      <figure>
        <figcaption>
          <Legend parts={PARTS} />
        </figcaption>
        <ul class="device-bars">
          {results.map((row) => (
            <Bar key={nameOf(row)} row={row} onPoint={point} />
          ))}
        </ul>
        <Pointed words={pointed} hint="Point at a part to read it." />
      </figure>
      {page.matching > results.length && (
        <p class="dim">
          The first {DRAWN} of {formatCount(page.matching)} devices are drawn; all are in the table.
        </p>
      )}
      <Table analysis="temporal_breakdown" title="Computation and communication as a table" prefix="d." height={8} />
    </section>
  );
}

const nameOf = (row: Row): string => `rank ${row.rank}, GPU ${row.device}`;

/** A device's window as one bar, as wide as there is room. */
function Bar({ row, onPoint }: { row: Row; onPoint: (words: string) => void }) {
  const all = Number(row.span_ns ?? 0);
  const parts = PARTS.map((part) => ({ part, cell: row[`${part}_ns`], ns: Number(row[`${part}_ns`] ?? 0) }));
  const shown = parts.filter(({ ns }) => ns > 0);
  const words = shown.map(({ part, cell }) => `${partLook(part).words} ${formatCell("ns", cell)}`);
  let from = 0;
  return (
    <li>
      <span>{nameOf(row)}</span>
      <svg
        class="chart breakdown-bar"
        role="img"
        aria-label={`${nameOf(row)}: ${words.join(", ")}`}
        width="100%"
        height="20"
      >
        {shown.map(({ part, cell, ns }) => {
          const { colour, texture, words } = partLook(part);
          const x = (from / all) * 100;
          from += ns;
          const said = `${nameOf(row)}: ${words} ${formatCell("ns", cell)} (${exactCell("ns", cell)})`;
          return (
            <rect
              key={part}
              x={`${x}%`}
              width={`${(ns / all) * 100}%`}
              height="20"
              fill={fillOf(colour, texture)}
              onPointerEnter={() => onPoint(said)}
            />
          );
        })}
      </svg>
      <span class="number">
        <Value unit="ns" value={row.span_ns} />
      </span>
    </li>
  );
}
