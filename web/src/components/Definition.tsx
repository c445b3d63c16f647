import { useState } from "preact/hooks";
import { analyses } from "../state/runs";
import { Dialog } from "./Dialog";
import { paragraphs } from "./paragraphs";
import { Words } from "./Words";

/** ⓘ: what an analysis' numbers mean, in the words of the analysis itself. */
export function Definition({ analysis }: { analysis: string }) {
  const [isOpen, setOpen] = useState(false);
  const info = analyses.value.get(analysis);
  if (!info) return null;
  return (
    <>
      <button
        type="button"
        class="info"
        title={info.definition}
        aria-label={`What ${analysis} means`}
        onClick={() => setOpen(true)}
      >
        <span aria-hidden="true">i</span>
      </button>
      <Dialog title={analysis} isOpen={isOpen} onClose={() => setOpen(false)}>
        {Object.entries(info.sections).map(([heading, text]) => (
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
    </>
  );
}
