import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { QuerySchema } from "../../api/types";
import { type Candidate, type Completion, completionAt, lineAndColumn } from "./completion";

interface Props {
  readonly area: RefObject<HTMLTextAreaElement | null>;
  readonly text: string;
  readonly schema: QuerySchema | undefined;
  readonly onText: (text: string) => void;
  readonly onRun: () => void;
}

const LIST = "query-names";
const MOST_LINES = 18;
const LEAST_LINES = 6;

/**
 * Where a query is written, with a list of names that fit. A text of several lines may not be a combobox: it is a textbox
 * that says which option of the list is active.
 */
export function Editor({ area, text, schema, onText, onRun }: Props) {
  const [completion, setCompletion] = useState<Completion | null>(null);
  const [active, setActive] = useState(0);
  const [scroll, setScroll] = useState({ left: 0, top: 0 });
  const list = useRef<HTMLUListElement>(null);
  const show = (next: Completion | null) => {
    setCompletion(next);
    setActive(0);
  };
  const complete = (isAsked: boolean) => {
    const { value, selectionStart, selectionEnd } = area.current ?? { value: "", selectionStart: 0, selectionEnd: -1 };
    show(schema && selectionStart === selectionEnd ? completionAt(value, selectionStart, schema, isAsked) : null);
  };
  const choose = (candidate: Candidate | undefined) => {
    if (area.current && completion && candidate) replace(area.current, completion.from, completion.to, candidate.text);
    show(null);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: another option is active
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [active]);

  const count = completion?.candidates.length ?? 0;
  const onKeyDown = (event: KeyboardEvent) => {
    const isWithControl = event.ctrlKey || event.metaKey;
    if (event.key === "Enter" && isWithControl) {
      show(null);
      onRun();
    } else if (event.key === " " && event.ctrlKey) complete(true);
    else if (!completion || isWithControl || event.altKey || event.shiftKey) return;
    else if (event.key === "ArrowDown") setActive((active + 1) % count);
    else if (event.key === "ArrowUp") setActive((active + count - 1) % count);
    else if (event.key === "Enter" || event.key === "Tab") choose(completion.candidates[active]);
    else if (event.key === "Escape") show(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  // The list is of one place.
  const onMoved = (event: Event) => {
    const { selectionStart, selectionEnd } = event.currentTarget as HTMLTextAreaElement;
    if (completion && (selectionStart !== completion.to || selectionEnd !== completion.to)) show(null);
  };

  const at = lineAndColumn(text, completion?.from ?? 0);
  const rows = Math.min(Math.max(text.split("\n").length + 1, LEAST_LINES), MOST_LINES);
  return (
    <div class="query-editor">
      <label for="query-sql" class="dim">
        SQL
      </label>
      <div class="query-text">
        <textarea
          ref={area}
          id="query-sql"
          rows={rows}
          wrap="off"
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          aria-autocomplete="list"
          aria-haspopup="listbox"
          aria-controls={completion ? LIST : undefined}
          aria-activedescendant={completion ? `${LIST}-${active}` : undefined}
          placeholder="Write a query, or choose an example."
          value={text}
          onInput={(event) => {
            onText(event.currentTarget.value);
            complete(false);
          }}
          onKeyDown={onKeyDown}
          onKeyUp={onMoved}
          onClick={onMoved}
          onBlur={() => show(null)}
          onScroll={(event) => {
            const { scrollLeft, scrollTop } = event.currentTarget;
            setScroll({ left: scrollLeft, top: scrollTop });
          }}
        />
        {completion && (
          // Where its name begins, below its line; as far to the left as it needs room.
          <div class="query-names-place" style={{ top: `calc(${at.line + 1} * var(--line-height) - ${scroll.top}px)` }}>
            <span style={{ width: `calc(${at.column}ch - ${scroll.left}px)` }} />
            <ul ref={list} id={LIST} role="listbox" aria-label="Names that fit">
              {completion.candidates.map((candidate, index) => (
                // biome-ignore lint/a11y/useKeyWithClickEvents: the text has the keys
                <li
                  key={`${candidate.kind} ${candidate.label}`}
                  id={`${LIST}-${index}`}
                  role="option"
                  tabIndex={-1}
                  aria-selected={index === active}
                  // So that the text keeps the focus.
                  onPointerDown={(event) => event.preventDefault()}
                  onMouseDown={(event) => event.preventDefault()}
                  onClick={() => choose(candidate)}
                >
                  <code>{candidate.label}</code> <span class="dim">{candidate.kind}</span>
                  <span class="about">{candidate.about}</span>
                </li>
              ))}
            </ul>
          </div>
        )}
      </div>
      <p class="hidden" aria-live="polite">
        {completion &&
          `${count} ${count === 1 ? "name fits" : "names fit"}: arrow keys and Enter choose, Escape closes.`}
      </p>
    </div>
  );
}

/** Writes into a text as a person does, so that it can be undone. */
export function replace(area: HTMLTextAreaElement, from: number, to: number, text: string): void {
  area.focus();
  area.setSelectionRange(from, to);
  if (document.execCommand("insertText", false, text)) return;
  area.setRangeText(text, from, to, "end");
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Writes a name where the caret is, apart from a word before it. */
export function insertName(area: HTMLTextAreaElement, name: string): void {
  const { selectionStart: from, selectionEnd: to, value } = area;
  replace(area, from, to, /\w$/.test(value.slice(0, from)) ? ` ${name}` : name);
}
