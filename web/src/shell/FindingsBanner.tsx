import { runPath } from "../api/paths";
import type { Envelope } from "../api/types";
import { FindingList } from "../components/FindingList";
import { Words } from "../components/Words";
import { useAnswer } from "../state/answer";
import { detail, runId } from "../state/runs";

/** What is doubtful about the numbers, before anyone reads them. */
export function FindingsBanner() {
  // Where the address names no run, the page says so.
  const known = runId.value === detail.value?.id ? detail.value : null;
  const answer = useAnswer<Envelope>(known && runPath(known.id, "analyses/findings?limit=1"), known?.version ?? 0);
  if (answer.state === "failed") {
    const { what, hint } = answer.error;
    return (
      <details class="banner suspect">
        <summary>
          Findings are not known: <Words text={what} />
        </summary>
        {hint && (
          <p>
            <Words text={hint} />
          </p>
        )}
      </details>
    );
  }
  const findings = answer.value?.findings ?? [];
  const severe = findings.filter((finding) => finding.severity === "severe").length;
  const suspect = findings.filter((finding) => finding.severity === "suspect").length;
  if (severe + suspect === 0) return null;
  const said = [
    severe > 0 && `${severe} severe: data is missing or contradictory`,
    suspect > 0 && `${suspect} suspect: some numbers may be incomplete or doubtful`,
  ];
  return (
    <details class={`banner ${severe > 0 ? "severe" : "suspect"}`}>
      <summary>Findings: {said.filter(Boolean).join("; ")}</summary>
      <FindingList findings={findings.filter((finding) => finding.severity !== "info")} />
    </details>
  );
}
