import { FindingList } from "../../components/FindingList";
import { formatCount } from "../../format/units";
import { type Compared, useCompared } from "./asked";

/** What is doubtful about either side. */
export function Doubts({ compared }: { compared: Compared }) {
  const findings = useCompared(compared, "steps").value?.findings ?? [];
  if (findings.length === 0) return null;
  const isDoubtful = findings.some(({ severity }) => severity !== "info");
  return (
    <details class={isDoubtful ? "banner suspect" : "banner"}>
      <summary>Findings of the two runs: {formatCount(findings.length)}</summary>
      <FindingList findings={findings} />
    </details>
  );
}
