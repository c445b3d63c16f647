import { runPath, withQuery } from "../api/paths";
import type { Breakdown, Envelope, Num, Row } from "../api/types";
import { partLook } from "../classes";
import { formatCount } from "../format/units";
import { useAnswer } from "../state/answer";
import { hrefOf, selection } from "../state/route";
import { detail, runId } from "../state/runs";
import { BreakdownBar } from "./charts/BreakdownBar";
import { Swatch } from "./charts/Swatch";
import { Definition } from "./Definition";
import { timelineSearch } from "./links";
import { ErrorNotice, Loading } from "./Notice";
import { PlainHead } from "./table/PlainHead";
import { Value } from "./Value";

/** Devices whose causes are drawn; all are in the table of the analysis. */
const DRAWN = 16;
/** Causes of a device where there is little room. */
const FIRST = 3;

/** Why devices idle, cause by cause, with what the host did meanwhile: all causes, or the first few of each device. */
export function IdleCauses({ isWhole = false }: { isWhole?: boolean }) {
  const path = withQuery(runPath(runId.value, "analyses/idle_causes"), [...selection.value, ["limit", 1_000]]);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading what="Finding out why devices idle…" />;
  const devices = devicesOf(answer.value.results);
  if (devices.length === 0) return null;
  return (
    <section aria-label="Why devices idle" aria-busy={answer.state === "loading"}>
      <h2>
        {isWhole ? "Causes" : <a href={hrefOf("idle")}>Why devices idle</a>} <Definition analysis="idle_causes" />
      </h2>
      {devices.slice(0, DRAWN).map((device) => (
        <CausesOf key={device.name} device={device} isWhole={isWhole} />
      ))}
      {devices.length > DRAWN && (
        <p class="dim">
          The first {DRAWN} of {formatCount(devices.length)} devices are drawn; choose a rank to see its devices.
        </p>
      )}
    </section>
  );
}

interface Device {
  readonly name: string;
  readonly causes: readonly Row[];
  readonly idle: Breakdown;
}

/** The causes of each device, the longest first. */
function devicesOf(rows: readonly Row[]): Device[] {
  const names = [...new Set(rows.map(nameOf))];
  return names.map((name) => {
    const causes = rows.filter((row) => nameOf(row) === name && Number(row.idle_ns) > 0);
    causes.sort((one, other) => Number(other.idle_ns) - Number(one.idle_ns));
    const total = causes.reduce((sum, row) => sum + BigInt(row.idle_ns as Num), 0n);
    const parts = causes.map((row) => ({
      class: String(row.cause),
      ns: row.idle_ns as Num,
      ratio: Number(row.idle_ratio),
    }));
    return { name, causes, idle: { total_ns: total, parts } };
  });
}

const nameOf = (row: Row): string => `GPU ${row.device} of rank ${row.rank}`;

function CausesOf({ device: { name, causes, idle }, isWhole }: { device: Device; isWhole: boolean }) {
  return (
    <article class="device">
      <h3>
        {name}{" "}
        <span class="dim">
          idle for <Value unit="ns" value={idle.total_ns} />
        </span>
      </h3>
      <BreakdownBar breakdown={idle} label={`${name}, idle time by cause`} />
      {isWhole ? <CauseTable name={name} causes={causes} /> : <CauseList name={name} causes={causes.slice(0, FIRST)} />}
    </article>
  );
}

/** The first causes in a few lines. */
function CauseList({ name, causes }: { name: string; causes: readonly Row[] }) {
  return (
    <ul class="causes" aria-label={`Why ${name} idles`}>
      {causes.map((row) => (
        <li key={row.cause as string}>
          <Swatch part={String(row.cause)} /> {partLook(String(row.cause)).words}{" "}
          <span class="number">
            <Value unit="ns" value={row.idle_ns} />
          </span>{" "}
          <span class="dim">
            <Value unit="ratio" value={row.idle_ratio} />
          </span>
          {typeof row.host === "string" && (
            <>
              , mostly in <Host row={row} />
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

/** All causes with all that is known of them. */
function CauseTable({ name, causes }: { name: string; causes: readonly Row[] }) {
  return (
    <table class="plain causes-table" aria-label={`Why ${name} idles`}>
      <PlainHead
        columns={[
          "Cause",
          { number: "Time" },
          { number: "Share" },
          { number: "Gaps" },
          { number: "Longest" },
          "Host meanwhile, mostly",
        ]}
      />
      <tbody>
        {causes.map((row) => (
          <tr key={row.cause as string}>
            <th scope="row">
              <Swatch part={String(row.cause)} /> {partLook(String(row.cause)).words}
            </th>
            <td class="number">
              <Value unit="ns" value={row.idle_ns} />
            </td>
            <td class="number">
              <Value unit="ratio" value={row.idle_ratio} />
            </td>
            <td class="number">
              <Value unit="count" value={row.gaps} />
            </td>
            <td class="number">
              <Value unit="ns" value={row.longest_ns} />
            </td>
            <td>
              <Host row={row} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What the host was in for the longest time, with all of it on the timeline. */
function Host({ row }: { row: Row }) {
  if (typeof row.host !== "string") return <span class="dim">not known</span>;
  return (
    <>
      <a href={timelineSearch(row.host)}>
        <Value unit="text" value={row.host} />
      </a>{" "}
      <span class="dim">
        for <Value unit="ns" value={row.host_ns} />
      </span>
    </>
  );
}
