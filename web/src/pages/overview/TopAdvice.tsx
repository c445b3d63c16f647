import type { Advice } from "../../api/types";
import { OnTimeline } from "../../components/AdviceList";
import { Definition } from "../../components/Definition";
import { Diff } from "../../components/Diff";
import { Gain } from "../../components/Gain";
import { evidencePage } from "../../components/links";
import { Words } from "../../components/Words";

/** Rules that are told at once; all are further below. */
const FIRST = 3;

/** What there is most to gain from, one entry a rule: the fault, the gain, what to do, what would disprove it, and the place. */
export function TopAdvice({ advice }: { advice: readonly Advice[] }) {
  if (advice.length === 0) return null;
  const rules = advice.filter((row, at) => advice.findIndex(({ rule }) => rule === row.rule) === at);
  return (
    <section aria-label="Most to gain">
      <h2>
        Most to gain <Definition analysis="advice" />
      </h2>
      <ol class="advice brief">
        {rules.slice(0, FIRST).map((row) => (
          <li key={row.rule} class={row.priority}>
            <p class="advice-head">
              <strong>{row.fault}</strong>
              {row.gain_ns !== null && (
                <>
                  : <Gain row={row} />
                </>
              )}
            </p>
            <p class="dim to-do">
              <Words text={row.to_do} />
            </p>
            <Diff text={row.diff} />
            <p class="dim">
              It is not so if: <Words text={row.disproof} />
            </p>
            <p class="advice-links">
              {row.line !== null && <code>{row.line}</code>}
              <OnTimeline row={row} />
              <a href={evidencePage(row.evidence)}>Numbers</a>
            </p>
          </li>
        ))}
      </ol>
      {advice.length > FIRST && (
        <button type="button" onClick={showAll}>
          All {advice.length} pieces of advice
        </button>
      )}
    </section>
  );
}

/** The list below, with all rows and the numbers of each. */
function showAll() {
  const list = document.querySelector<HTMLElement>("section[aria-label=Advice] h2");
  list?.scrollIntoView({ block: "start" });
}
