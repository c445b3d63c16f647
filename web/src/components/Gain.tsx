import type { Advice } from "../api/types";
import { formatNs } from "../format/units";
import { Value } from "./Value";

/** What there is to gain by a piece of advice, as the command says it. */
export function Gain({ row }: { row: Advice }) {
  if (row.gain_ns === null) return "gain not known";
  return (
    <>
      {isPart(row) ? (
        <>
          <Value unit="ns" value={row.own_gain_ns} /> to{" "}
        </>
      ) : (
        `${row.gain_words} `
      )}
      <Value unit="ns" value={row.gain_ns} />
      {row.gain_ratio !== null && (
        <>
          , <Value unit="ratio" value={row.gain_ratio} />
        </>
      )}
    </>
  );
}

/** Whether other advice is about a part of the same time that can be seen in the numbers. */
const isPart = ({ own_gain_ns, gain_ns }: Advice): boolean =>
  own_gain_ns !== null &&
  gain_ns !== null &&
  Number(own_gain_ns) < Number(gain_ns) &&
  formatNs(own_gain_ns) !== formatNs(gain_ns);
