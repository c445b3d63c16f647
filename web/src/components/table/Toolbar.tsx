import { useEffect, useRef, useState } from "preact/hooks";
import { askRaw, withToken } from "../../api/client";
import { type Query, withQuery } from "../../api/paths";
import type { Column, Envelope } from "../../api/types";
import { CopyButton } from "../CopyButton";
import { Menu } from "../Menu";
import type { Choices } from "./choices";
import { Filters } from "./Filters";

/** What is copied at once, at most; more is a file. */
const MAX_COPIED = 10_000;
const FILES = [
  ["csv", "CSV"],
  ["tsv", "TSV"],
  ["md", "Markdown"],
  ["json", "JSON"],
  ["parquet", "Parquet"],
] as const;

interface Props {
  readonly path: string;
  readonly query: Query;
  readonly envelope: Envelope;
  readonly choices: Choices;
  readonly shown: readonly Column[];
  readonly onChange: (next: Partial<Choices>, replace?: boolean) => void;
}

/** What can be done with a table: search, conditions, columns, copying, files. */
export function Toolbar({ path, query, envelope, choices, shown, onChange }: Props) {
  // Files have all rows; JSON comes in pages, of which one is at most as long as what is copied.
  const addressOf = (format: string) =>
    withQuery(path, [...query, ["format", format], ["limit", format === "json" ? MAX_COPIED : null]]);
  const copied = (format: string) => async () => (await askRaw(addressOf(format))).text();
  const names = new Set(shown.map((column) => column.name));
  const toggle = (name: string) => {
    const next = envelope.columns.map((column) => column.name).filter((known) => (known === name) !== names.has(known));
    onChange({ columns: next });
  };
  return (
    <div class="toolbar">
      <Search text={choices.search} onChange={(search) => onChange({ search }, true)} />
      <Filters columns={envelope.columns} where={choices.where} onChange={(where) => onChange({ where })} />
      <Menu label="Columns">
        <fieldset class="columns">
          <legend>Columns to show</legend>
          {envelope.columns.map((column) => (
            <label key={column.name}>
              <input type="checkbox" checked={names.has(column.name)} onChange={() => toggle(column.name)} />
              {column.label}
              {!column.has_answers && <span class="dim"> (nothing known)</span>}
            </label>
          ))}
          <button type="button" onClick={() => onChange({ columns: null })}>
            As at first
          </button>
        </fieldset>
      </Menu>
      <Menu label="Copy and save">
        <div class="actions">
          {envelope.page.matching <= MAX_COPIED ? (
            <>
              <CopyButton text={copied("tsv")}>Copy as TSV</CopyButton>
              <CopyButton text={copied("md")}>Copy as Markdown</CopyButton>
            </>
          ) : (
            <p class="dim">Too many rows to copy; save them as a file.</p>
          )}
          {FILES.map(([format, name]) => (
            <a key={format} href={withToken(addressOf(format))} download={`${envelope.analysis}.${format}`}>
              Save as {name}
            </a>
          ))}
        </div>
      </Menu>
    </div>
  );
}

/** What is typed is searched for once the person pauses. */
function Search({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const [typed, setTyped] = useState(text);
  const timer = useRef(0);
  useEffect(() => {
    clearTimeout(timer.current);
    setTyped(text);
  }, [text]);
  const onInput = (event: InputEvent) => {
    const next = (event.currentTarget as HTMLInputElement).value;
    setTyped(next);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => onChange(next), 200);
  };
  return (
    <input
      type="search"
      class="search"
      placeholder="Search rows"
      aria-label="Search rows"
      value={typed}
      onInput={onInput}
    />
  );
}
