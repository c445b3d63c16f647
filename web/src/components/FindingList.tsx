import type { Finding } from "../api/types";
import { formatCount } from "../format/units";
import { Words } from "./Words";

/** Findings with what they say, how often, and the first cases. */
export function FindingList({ findings }: { findings: readonly Finding[] }) {
  return (
    <ul class="findings">
      {findings.map((finding) => (
        <li key={finding.code} class={finding.severity}>
          <strong>{finding.severity}</strong> <Words text={finding.says} />{" "}
          <span class="dim">
            <code>{finding.code}</code> × {formatCount(finding.count)}
          </span>
          {finding.examples.length > 0 && (
            <details>
              <summary>Examples</summary>
              <ul>
                {finding.examples.map((example) => (
                  <li key={example}>
                    <code>{example}</code>
                  </li>
                ))}
              </ul>
            </details>
          )}
        </li>
      ))}
    </ul>
  );
}
