import type { Advice } from "../api/types";
import { formatCount } from "../format/units";
import { hrefOf } from "../state/route";
import { Definition } from "./Definition";
import { Diff } from "./Diff";
import { Gain } from "./Gain";
import { evidencePage, timelineOfAdvice } from "./links";
import { analysisTitle } from "./vocabulary";
import { Words } from "./Words";

/** What to change, what there is most to gain from first, each with the numbers behind it. */
export function AdviceList({ advice }: { advice: readonly Advice[] }) {
  if (advice.length === 0) return null;
  return (
    <section aria-label="Advice">
      <h2>
        Advice <Definition analysis="advice" />
      </h2>
      <p class="dim">Gains overlap: do not add them.</p>
      <ul class="advice">
        {advice.map((row, at) => (
          <li key={`${at} ${row.rule}`} class={row.priority}>
            <p class="advice-head">
              <strong class="priority">{row.priority}</strong> <strong>{row.fault}</strong>: <Gain row={row} />{" "}
              <code>{row.rule}</code>
              {row.others > 0 && <span class="dim"> and {timesWords(row.others)} elsewhere</span>}
            </p>
            <p>
              <Words text={row.says} />
            </p>
            <p>
              <Words text={row.to_do} />
            </p>
            <Diff text={row.diff} />
            {row.gain_method !== null && <p class="dim">Gain by {row.gain_method}.</p>}
            <p class="dim">
              It is not so if: <Words text={row.disproof} />
            </p>
            <p class="advice-links">
              <a href={evidencePage(row.evidence)}>The numbers: {analysisTitle(row.evidence)}</a>
              {row.evidence === "roofline" && (
                <a href={hrefOf("tables", { analysis: "roofline", group: "shapes" })}>By shape</a>
              )}
              <OnTimeline row={row} />
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The place that advice is about. */
export function OnTimeline({ row }: { row: Advice }) {
  const href = timelineOfAdvice(row);
  return href && <a href={href}>On the timeline</a>;
}

const timesWords = (times: number): string => (times === 1 ? "once" : `${formatCount(times)} times`);
