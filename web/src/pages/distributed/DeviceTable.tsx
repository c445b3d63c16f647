import { runPath, withQuery } from "../../api/paths";
import type { Cell, Envelope, Unit } from "../../api/types";
import { Definition } from "../../components/Definition";
import { ErrorNotice } from "../../components/Notice";
import { PlainHead } from "../../components/table/PlainHead";
import { Value } from "../../components/Value";
import { formatCount } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { param, selection } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { type DeviceOfRank, devicesOf } from "./devices";

/** Devices that are listed. */
const MOST = 200;

interface DeviceColumn {
  readonly head: string;
  readonly unit: Unit;
  readonly of: (row: DeviceOfRank) => Cell | undefined;
}

const COLUMNS: readonly DeviceColumn[] = [
  { head: "Rank", unit: "id", of: (row) => row.rank },
  { head: "Host", unit: "text", of: (row) => row.host },
  { head: "Process", unit: "text", of: (row) => row.process },
  { head: "Device", unit: "id", of: (row) => row.device },
  { head: "Name", unit: "text", of: (row) => row.name },
  { head: "Memory", unit: "bytes", of: (row) => row.memory_bytes },
  { head: "Runs kernels", unit: "ratio", of: (row) => row.use?.utilization_ratio },
  { head: "Multiprocessors", unit: "ratio", of: (row) => row.use?.sm_efficiency_ratio },
  { head: "Occupancy", unit: "ratio", of: (row) => row.use?.occupancy_ratio },
];

/** Which rank runs where, on which device, and how well that is used. */
export function DeviceTable() {
  const known = detail.value;
  const query = [...selection.value, ["limit", 10_000]] as const;
  const path = withQuery(runPath(runId.value, "analyses/gpu_utilization"), query);
  const answer = useAnswer<Envelope>(path, known?.version ?? 0);
  if (!known) return null;
  const all = devicesOf(known, answer.value?.results ?? [], param("rank"));
  // What is known of no row has no column.
  const shown = COLUMNS.filter(({ of }) => all.some((row) => (of(row) ?? null) !== null));
  return (
    <section aria-label="Ranks and devices" aria-busy={answer.state === "loading"}>
      <h2>
        Ranks and devices <Definition analysis="gpu_utilization" />
      </h2>
      {answer.state === "failed" && <ErrorNotice error={answer.error} />}
      <div class="table-scroll device-table">
        <table class="plain" aria-label="Ranks and devices">
          <PlainHead columns={shown.map(({ head, unit }) => (unit === "text" ? head : { number: head }))} />
          <tbody>
            {all.slice(0, MOST).map((row) => (
              <tr key={`${row.rank} ${row.device}`}>
                {shown.map(({ head, unit, of }) => (
                  <td key={head} class={unit === "text" ? undefined : "number"}>
                    <Value unit={unit} value={of(row)} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {all.length > MOST && (
        <p class="dim">
          The first {formatCount(MOST)} of {formatCount(all.length)} are listed; choose a rank to see its devices.
        </p>
      )}
    </section>
  );
}
