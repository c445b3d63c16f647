import { runPath, withQuery } from "../../api/paths";
import type { Envelope } from "../../api/types";
import { Definition } from "../../components/Definition";
import { ErrorNotice } from "../../components/Notice";
import { PlainHead } from "../../components/table/PlainHead";
import { Value } from "../../components/Value";
import { MISSING } from "../../format/cell";
import { formatCount } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { param, selection } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { devicesOf } from "./devices";

/** Devices that are listed. */
const MOST = 200;

/** Which rank runs where, on which device, and how well that is used. */
export function DeviceTable() {
  const known = detail.value;
  const query = [...selection.value, ["limit", 10_000]] as const;
  const path = withQuery(runPath(runId.value, "analyses/gpu_utilization"), query);
  const answer = useAnswer<Envelope>(path, known?.version ?? 0);
  if (!known) return null;
  const all = devicesOf(known, answer.value?.results ?? [], param("rank"));
  return (
    <section aria-label="Ranks and devices" aria-busy={answer.state === "loading"}>
      <h2>
        Ranks and devices <Definition analysis="gpu_utilization" />
      </h2>
      {answer.state === "failed" && <ErrorNotice error={answer.error} />}
      <div class="table-scroll device-table">
        <table class="plain" aria-label="Ranks and devices">
          <PlainHead
            columns={[
              { number: "Rank" },
              "Host",
              "Process",
              { number: "Device" },
              "Name",
              { number: "Memory" },
              { number: "Runs kernels" },
              { number: "Multiprocessors" },
              { number: "Occupancy" },
            ]}
          />
          <tbody>
            {all.slice(0, MOST).map((row) => (
              <tr key={`${row.rank} ${row.device}`}>
                <td class="number">{row.rank}</td>
                <td>{row.host ?? MISSING}</td>
                <td>{row.process ?? MISSING}</td>
                <td class="number">{row.device === null ? MISSING : String(row.device)}</td>
                <td>{row.name ?? MISSING}</td>
                <td class="number">
                  <Value unit="bytes" value={row.memory_bytes} />
                </td>
                <td class="number">
                  <Value unit="ratio" value={row.use?.utilization_ratio} />
                </td>
                <td class="number">
                  <Value unit="ratio" value={row.use?.sm_efficiency_ratio} />
                </td>
                <td class="number">
                  <Value unit="ratio" value={row.use?.occupancy_ratio} />
                </td>
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
