import type { Report } from "../../api/types";
import { BreakdownBar } from "../../components/charts/BreakdownBar";
import { BreakdownTable } from "../../components/charts/BreakdownTable";
import { Definition } from "../../components/Definition";
import { Table } from "../../components/table/Table";
import { Value } from "../../components/Value";
import { formatCount } from "../../format/units";

/** Devices whose bars are drawn; all are in the table. */
const DRAWN = 16;

/** What each device did with its time, and how well it was used. */
export function Devices({ report }: { report: Report }) {
  if (report.devices.length === 0) return null;
  return (
    <section aria-label="Devices">
      <h2>
        Devices <Definition analysis="temporal_breakdown" />
      </h2>
      {report.devices.slice(0, DRAWN).map((device) => {
        const name = `GPU ${device.device} of rank ${device.rank}`;
        return (
          <article key={name} class="device">
            <h3>
              {name}{" "}
              <span class="dim">
                {device.name} · {formatCount(device.device_events)} device events
                {device.overlap_ratio !== null && (
                  <>
                    {" "}
                    · <Value unit="ratio" value={device.overlap_ratio} /> of communication is hidden
                  </>
                )}
              </span>
            </h3>
            <BreakdownBar breakdown={device.breakdown} label={name} />
            <BreakdownTable breakdown={device.breakdown} label={name} />
          </article>
        );
      })}
      {report.devices.length > DRAWN && (
        <p class="dim">
          The first {DRAWN} of {formatCount(report.devices.length)} are drawn; choose a rank to see its devices.
        </p>
      )}
      <Table analysis="gpu_utilization" title="How well devices are used" prefix="u." height={8} />
    </section>
  );
}
