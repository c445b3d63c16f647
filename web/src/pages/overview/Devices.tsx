import type { Report } from "../../api/types";
import { BreakdownBar } from "../../components/charts/BreakdownBar";
import { BreakdownLegend } from "../../components/charts/BreakdownLegend";
import { Definition } from "../../components/Definition";
import { IdleCauses } from "../../components/IdleCauses";
import { Value } from "../../components/Value";
import { formatCount } from "../../format/units";
import { hrefOf } from "../../state/route";

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
            <BreakdownLegend breakdown={device.breakdown} label={`What ${name} does`} />
          </article>
        );
      })}
      {report.devices.length > DRAWN && (
        <p class="dim">
          The first {DRAWN} of {formatCount(report.devices.length)} are drawn; choose a rank to see its devices.
        </p>
      )}
      <IdleCauses />
      <p>
        <a href={hrefOf("efficiency")}>How well devices are used</a>
      </p>
    </section>
  );
}
