import { signal } from "@preact/signals";
import type { Column } from "../api/types";
import { unitWords } from "../format/cell";
import { analyses } from "../state/runs";
import { Dialog } from "./Dialog";
import { paragraphs } from "./paragraphs";
import { docWords } from "./table/words";
import { analysisTitle, withoutCode } from "./vocabulary";
import { Words } from "./Words";

interface Props {
  readonly analysis: string;
  /** The columns of the table beside which it stands, which are explained one by one. */
  readonly columns?: readonly Column[];
}

/** The analysis whose definition is open. */
const opened = signal<Props | null>(null);

/** ⓘ: opens what an analysis' numbers mean. */
export function Definition({ analysis, columns = [] }: Props) {
  const info = analyses.value.get(analysis);
  if (!info) return null;
  return (
    <button
      type="button"
      class="info"
      title={withoutCode(info.definition)}
      aria-label={`What “${analysisTitle(analysis)}” means`}
      onClick={() => {
        opened.value = { analysis, columns };
      }}
    >
      <span aria-hidden="true">i</span>
    </button>
  );
}

/** What an analysis' numbers mean, in the words of the analysis itself. It stands in no heading, whose letters are bold. */
export function OpenDefinition() {
  const { analysis: name, columns = [] } = opened.value ?? { analysis: "" };
  const sections = Object.entries(analyses.value.get(name)?.sections ?? {});
  const close = () => {
    opened.value = null;
  };
  return (
    <Dialog title={analysisTitle(name)} isOpen={opened.value !== null} onClose={close}>
      {parts(sections.slice(0, 1))}
      {columns.length > 0 && (
        <section>
          <h3>Columns</h3>
          <dl class="keys">
            {columns.map((column) => (
              <div key={column.name}>
                <dt>{column.label}</dt>
                <dd>
                  {docWords(column)} <span class="dim">{unitWords(column)}</span>
                </dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {parts(sections.slice(1))}
    </Dialog>
  );
}

/** Parts of a definition, each with its heading. */
const parts = (sections: readonly (readonly [heading: string, text: string])[]) =>
  sections.map(([heading, text]) => (
    <section key={heading}>
      <h3>{heading}</h3>
      {paragraphs(text).map((paragraph, at) => (
        <p key={at} class={paragraph.isItem ? "item" : undefined}>
          <Words text={paragraph.text} />
        </p>
      ))}
    </section>
  ));
