import type { Coverage } from "../../api/types";
import { Words } from "../../components/Words";
import { formatCount } from "../../format/units";

/** What the silence of the advice rests on: rules that were not judged, by what the recording lacks for them. */
export function NotJudged({ coverage }: { coverage: Coverage }) {
  const { rules_judged: judged, rules_not_judged: others } = coverage;
  if (others === 0) return null;
  return (
    <details>
      <summary>
        {formatCount(others)} of {formatCount(judged + others)} rules of advice were not judged
      </summary>
      <ul aria-label="Rules that were not judged">
        {coverage.not_judged.map(({ lacks, rules }) => (
          <li key={lacks}>
            <Words text={lacks} /> <span class="dim">{rules.join(", ")}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
