import { signal } from "@preact/signals";
import { analyses } from "../state/runs";
import { Dialog } from "./Dialog";
import { paragraphs } from "./paragraphs";
import { analysisTitle, withoutCode } from "./vocabulary";
import { Words } from "./Words";

/** The analysis whose definition is open. */
const opened = signal<string | null>(null);

/** ⓘ: opens what an analysis' numbers mean. */
export function Definition({ analysis }: { analysis: string }) {
  const info = analyses.value.get(analysis);
  if (!info) return null;
  return (
    <button
      type="button"
      class="info"
      title={withoutCode(info.definition)}
      aria-label={`What “${analysisTitle(analysis)}” means`}
      onClick={() => {
        opened.value = analysis;
      }}
    >
      <span aria-hidden="true">i</span>
    </button>
  );
}

/** What an analysis' numbers mean, in the words of the analysis itself. It stands in no heading, whose letters are bold. */
export function OpenDefinition() {
  const name = opened.value ?? "";
  const sections = Object.entries(analyses.value.get(name)?.sections ?? {});
  const close = () => {
    opened.value = null;
  };
  return (
    <Dialog title={analysisTitle(name)} isOpen={opened.value !== null} onClose={close}>
      {sections.map(([heading, text]) => (
        <section key={heading}>
          <h3>{heading}</h3>
          {paragraphs(text).map((paragraph, at) => (
            <p key={at} class={paragraph.isItem ? "item" : undefined}>
              <Words text={paragraph.text} />
            </p>
          ))}
        </section>
      ))}
    </Dialog>
  );
}
